import type { Socket } from 'node:net';
import { Duplex, Transform, type TransformCallback } from 'node:stream';
import type { Turns } from '@atoll/waiting';

/** What is read may be hundreds of small packets, some milliseconds of work. */
const usualReadBytes = 8 * 1024;
/** What is written is one packet of SSH, as large as most clients take: a packet costs more than its bytes. */
const writtenBytes = 32 * 1024;
/** What waits to be sent to a client, until nothing more is written to it of what its pods write. */
const unsentBytes = 256 * 1024;
/** What waits to be sent to a client, until nothing more is read of it either: answers wait for nobody. */
const heldBytes = 1024 * 1024;

const nothing = Buffer.alloc(0);

/** Runs a piece of work in a later turn. */
export type QueuePiece = (piece: () => void) => void;

/** Bytes that are passed on in pieces, each in a turn of its own. */
export class PacedStream extends Transform {
  constructor(private readonly queue: QueuePiece) {
    super();
  }

  override _transform(chunk: Buffer, encoding: BufferEncoding, done: TransformCallback): void {
    this.queue(() => {
      if (this.destroyed) return;
      this.push(chunk.subarray(0, writtenBytes));
      if (chunk.length > writtenBytes) this._transform(chunk.subarray(writtenBytes), encoding, done);
      else done();
    });
  }
}

interface PacedReading {
  /** Of a piece; 8 KiB unless given. */
  readonly readBytes?: number;
  /** Whether there is room for more. Where there is none, `readOn` is to be called later. */
  readonly mayRead?: () => boolean;
}

/**
 * A socket whose bytes arrive in pieces, each in a turn of its own. Nothing more is read meanwhile, so that a client
 * waits as TCP has it.
 */
export class PacedSocket extends Duplex {
  #rest: Buffer = nothing;
  #isQueued = false;
  #isHeld = false;
  /** Pieces of output that wait until the client has read. */
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly socket: Socket,
    private readonly turns: Turns,
    private readonly who: () => string,
    private readonly reading: PacedReading = {},
  ) {
    super({ allowHalfOpen: false });
    socket.pause();
    socket
      .on('data', (chunk: Buffer) => {
        socket.pause();
        this.#rest = chunk;
        this.#queue();
      })
      .once('end', () => this.push(null))
      .once('close', () => this.destroy());
  }

  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  get remoteFamily(): string | undefined {
    return this.socket.remoteFamily;
  }

  get remotePort(): number | undefined {
    return this.socket.remotePort;
  }

  override _read(): void {
    this.#isHeld = this.writableLength > heldBytes || this.reading.mayRead?.() === false;
    if (this.#isHeld) return;
    if (this.#rest.length > 0) this.#queue();
    else this.socket.resume();
  }

  /** Reads again, where it was held up. */
  readOn(): void {
    if (this.#isHeld) this._read();
  }

  /**
   * Runs a piece that writes to the client, in a turn in which little waits to be sent: ssh2 writes whatever the client
   * has opened its window for, which may be 4 GiB, and does not look at whether the client reads.
   */
  queueWrite(piece: () => void): void {
    this.turns.queue(this.who(), () => {
      if (this.writableLength <= unsentBytes || this.destroyed) piece();
      else this.#waiting.push(piece);
    });
  }

  #queue(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.turns.queue(this.who(), () => {
      this.#isQueued = false;
      if (this.destroyed) return;
      const { readBytes = usualReadBytes } = this.reading;
      const piece = this.#rest.subarray(0, readBytes);
      // An empty part of a chunk would hold all of it.
      this.#rest = this.#rest.length > readBytes ? this.#rest.subarray(readBytes) : nothing;
      // At once, so that a turn that nobody else needs does all of it.
      if (this.push(piece) && this.#rest.length > 0) this.#queue();
    });
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // Once the socket has sent it, so that `writableLength` is all that waits. Whoever waits for this write goes on
    // when nobody reads it any more, too; an error ends the socket by itself.
    this.socket.write(chunk, () => {
      done();
      this.readOn();
      if (this.writableLength <= unsentBytes) this.#writeOn();
    });
  }

  override _final(done: () => void): void {
    this.socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.socket.destroy();
    this.#writeOn();
    done(error);
  }

  #writeOn(): void {
    for (const piece of this.#waiting.splice(0)) this.queueWrite(piece);
  }
}
