import { Readable } from 'node:stream';

/**
 * A piece of output: `POST /containers/{id}/attach` in the Docker Engine API describes the form, 8 bytes of head before
 * each.
 */
export interface Frame {
  readonly stream: 'stdout' | 'stderr';
  readonly data: Buffer;
}

const headBytes = 8;
const stderrCode = 2;

/** Cuts what carries stdout and stderr together into frames. */
export class FrameParser {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that end within `chunk`. */
  push(chunk: Buffer): Frame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    let at = 0;
    while (bytes.length - at >= headBytes) {
      const end = at + headBytes + bytes.readUInt32BE(at + 4);
      if (bytes.length < end) break;
      frames.push({
        stream: bytes[at] === stderrCode ? 'stderr' : 'stdout',
        data: bytes.subarray(at + headBytes, end),
      });
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return frames;
  }
}

export async function* framesOf(source: Readable): AsyncGenerator<Frame> {
  const parser = new FrameParser();
  for await (const chunk of source as AsyncIterable<Buffer>) yield* parser.push(chunk);
}

/** A stream whose writer waits until its reader wants more. */
export class Outlet extends Readable {
  #more: (() => void) | null = null;

  override _read(): void {
    this.#more?.();
    this.#more = null;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this._read();
    callback(error);
  }

  /** Resolves when the reader has room for the next piece, or is gone. */
  async offer(data: Buffer): Promise<void> {
    if (this.destroyed || this.push(data)) return;
    await new Promise<void>((resolve) => (this.#more = resolve));
  }

  end(): void {
    if (!this.destroyed) this.push(null);
  }
}
