const none = Buffer.alloc(0);
const separator = '\u001e';

/**
 * What Podman adds to the output where the process ends while input for it is on its way. Behind it stand the words of
 * the system, as in `connection reset by peer` and `i/o timeout`.
 */
const complaint = /Error: (?:read|write) unixpacket @->\/proc\/self\/fd\/\d+\/attach: (?:read|write): [a-z/ ]{1,80}\n$/;
const begunComplaint = /Error: (?:read|write) unixpacket @->[^\n]{0,150}\n?$/;
const complaintBytes = 250;
const complaintStarts = ['Error: read unixpacket @->', 'Error: write unixpacket @->'];

/**
 * The end of a stream that the shell of a session on Podman writes: takes off the mark behind the output, and what
 * Podman adds at the very end. A tail that may become one of them waits for what follows it.
 */
export class OutputEnd {
  readonly #mark: Buffer;
  #held: Buffer = none;
  /** Whether the command has ended, and all that it wrote to this stream has come. */
  isMarked = false;
  /** Whether Podman may have dropped what followed. Known at the end. */
  isCut = false;

  constructor(mark: string) {
    this.#mark = Buffer.from(`${separator}${mark}${separator}`);
  }

  /** Returns what is output for certain. */
  push(data: Buffer): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, data]) : data;
    const at = this.isMarked ? -1 : bytes.indexOf(this.#mark);
    if (at < 0) return this.#hold(bytes);
    this.isMarked = true;
    return Buffer.concat([bytes.subarray(0, at), this.#hold(bytes.subarray(at + this.#mark.length))]);
  }

  /** Returns what was held back and is output. */
  end(): Buffer {
    const text = this.#held.toString('latin1');
    const output = text.replace(complaint, '');
    this.isCut = output.length < text.length;
    return this.#held.subarray(0, output.length);
  }

  #hold(bytes: Buffer): Buffer {
    const end = bytes.length - Math.max(this.#begunMark(bytes), this.#begunComplaint(bytes));
    this.#held = bytes.subarray(end);
    return bytes.subarray(0, end);
  }

  /** Bytes at the end with which the mark may begin. */
  #begunMark(bytes: Buffer): number {
    const at = this.isMarked ? -1 : bytes.lastIndexOf(separator);
    return at >= 0 && this.#mark.subarray(0, bytes.length - at).equals(bytes.subarray(at)) ? bytes.length - at : 0;
  }

  /**
   * Bytes at the end with which Podman's text may begin. While the command runs, only so much of it that no prompt ends
   * with it: somebody waits for that.
   */
  #begunComplaint(bytes: Buffer): number {
    const tail = bytes.toString('latin1', Math.max(bytes.length - complaintBytes, 0));
    const [begun] = begunComplaint.exec(tail) ?? [];
    if (begun !== undefined || !this.isMarked) return begun?.length ?? 0;
    return Math.max(...complaintStarts.map((start) => overlap(tail, start)));
  }
}

/** Characters at the end of one text with which the other begins. */
function overlap(text: string, next: string): number {
  let length = next.length - 1;
  while (!text.endsWith(next.slice(0, length))) length -= 1;
  return length;
}
