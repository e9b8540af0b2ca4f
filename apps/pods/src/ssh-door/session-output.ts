import { Writable } from 'node:stream';
import { FairSemaphore, withPatience } from '@atoll/waiting';
import type { ServerChannel } from 'ssh2';

/** What a client has to read the sentence with which its session ends, milliseconds; also one that reads slowly. */
const sentenceMs = 5_000;

/** What ssh2 1.17 keeps of a write to stdout and to stderr that waits for the client's window, and does not show. */
const kept = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };

/**
 * All that one session writes to its client: one write at a time, of stdout and stderr together. Both use one window
 * (RFC 4254, 5.2), and ssh2 cannot have both wait for it: when the client opens it, ssh2 goes on with one of them and
 * never with the other, and sends again what it kept of an earlier write. So the next write begins when ssh2 has sent
 * all of the last, and what it kept of that is cleared. Its `end` waits for stdout only and drops what stderr holds, so
 * it is called after the last write.
 */
export class SessionOutput {
  readonly #writes = new FairSemaphore({ permits: 1 });

  constructor(private readonly channel: ServerChannel) {
    // ssh2 ends it when the client closes the channel, and a write that comes later fails.
    channel.stderr.on('error', () => undefined);
  }

  /** `target`: the channel, or its stderr. It finishes when all has been sent. */
  sink(target: Writable): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => void this.#write(target, chunk).then(() => done(), done),
    });
  }

  /** After all that was written before, unless the client does not read it in time. */
  async end(code: number, last?: { readonly target: Writable; readonly text: string }): Promise<void> {
    if (last) await withPatience(this.#write(last.target, Buffer.from(last.text)), sentenceMs, undefined);
    this.channel.exit(code);
    // Also where a write still waits: `end` alone would wait with it.
    this.channel.destroy();
  }

  /** Resolves when ssh2 has sent it; never where the client has left. */
  #write(target: Writable, chunk: Buffer): Promise<void> {
    const sent = (resolve: () => void) => (): void => {
      Object.assign(this.channel, kept);
      resolve();
    };
    return this.#writes.run(() => new Promise((resolve) => void target.write(chunk, sent(resolve))));
  }
}
