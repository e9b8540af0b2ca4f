const endOfHead = [13, 10, 13, 10];

/**
 * Where frames of a WebSocket end (RFC 6455, 5.2) in what a server sends, its HTTP head first. Reads lengths, and
 * nothing that a frame holds.
 */
export class FrameEnds {
  /** Bytes of the blank line after the HTTP head that have come. */
  #blank = 0;
  readonly #head: number[] = [];
  /** Bytes of the frame that are to come after its head. */
  #left = 0;

  /** Whether the bytes so far end with the HTTP head or a frame. */
  get isBetween(): boolean {
    return this.#blank === endOfHead.length && this.#left === 0 && this.#head.length === 0;
  }

  /** Takes the bytes that follow. */
  see(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at += this.#take(bytes, at);
  }

  /** Takes the bytes that follow to the end of the frame that has begun, and no more; returns their number. */
  seeOut(bytes: Uint8Array): number {
    let at = 0;
    while (at < bytes.length && !this.isBetween) at += this.#take(bytes, at);
    return at;
  }

  /** Takes at least a byte; returns how many. */
  #take(bytes: Uint8Array, at: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, bytes.length - at);
      this.#left -= taken;
      return taken;
    }
    const byte = bytes[at] ?? 0;
    if (this.#blank < endOfHead.length) {
      this.#blank = byte === endOfHead[this.#blank] ? this.#blank + 1 : Number(byte === endOfHead[0]);
      return 1;
    }
    this.#head.push(byte);
    const length = lengthAfter(this.#head);
    if (length !== null) {
      this.#head.length = 0;
      this.#left = length;
    }
    return 1;
  }
}

/** Bytes that follow the head, a mask among them; null while it is not whole. */
function lengthAfter(head: readonly number[]): number | null {
  const [, second] = head;
  if (second === undefined) return null;
  const [short, maskBytes] = [second & 0x7f, second & 0x80 ? 4 : 0];
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
  if (head.length < 2 + lengthBytes) return null;
  const length = lengthBytes === 0 ? short : head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0);
  return length + maskBytes;
}

/** A frame that closes the connection, as servers send it. `reason`: 123 bytes at most. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame.writeUInt8(0x88, 0);
  frame.writeUInt8(2 + text.length, 1);
  frame.writeUInt16BE(code, 2);
  text.copy(frame, 4);
  return frame;
}
