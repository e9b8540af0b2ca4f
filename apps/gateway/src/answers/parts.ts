import { Readable } from 'node:stream';

const partBytes = 64 * 1024;

/** A long answer on its way, part by part of at most 64 KiB, at the speed at which it is read. */
export class Parts extends Readable {
  /** Bytes of the whole. */
  readonly length: number;
  private left: number;
  private readonly parts: Uint8Array[];

  constructor(bytes: readonly Uint8Array[]) {
    super();
    this.parts = bytes.flatMap((some) => sliced(some));
    this.length = this.left = bytes.reduce((sum, { length }) => sum + length, 0);
  }

  /** Bytes that have not been handed to the connection yet. */
  get unsent(): number {
    return this.left + this.readableLength;
  }

  override _read(): void {
    const part = this.parts.shift() ?? null;
    this.left -= part?.length ?? 0;
    this.push(part);
  }
}

function sliced(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length <= partBytes) return [bytes];
  const count = Math.ceil(bytes.length / partBytes);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * partBytes, (at + 1) * partBytes));
}
