import { invalidField, type AppError } from '@atoll/errors';
import { Json, maxReplyBytes } from '@atoll/rpc';
import type { Pace } from '@atoll/waiting';
import { longestDecimal, putDecimal } from '../money/decimal-bytes.js';

const [firstPartBytes, largestPartBytes] = [8 * 1024, 256 * 1024];
/** A UTF-16 code unit takes at most so many bytes of UTF-8. */
const bytesPerUnit = 3;
/** Longer texts are written in pieces. */
const longestPiece = 16 * 1024;

/** Writes JSON as UTF-8 into parts, straight from its figures: a text of the whole is never there. */
export class JsonWriter {
  private readonly parts: Uint8Array[] = [];
  private part = Buffer.allocUnsafeSlow(firstPartBytes);
  private at = 0;
  private bytesBefore = 0;

  /** Throws `invalid_input` that names `interval` where it becomes larger than that. */
  constructor(private readonly maxBytes = maxReplyBytes - largestPartBytes) {}

  /** Written so far. */
  get byteLength(): number {
    return this.bytesBefore + this.at;
  }

  /** Any piece of the JSON. Surrogates that belong together must not come apart. */
  text(text: string): void {
    for (let from = 0; from < text.length;) {
      const isCut = text.length - from > longestPiece && isHighSurrogate(text.charCodeAt(from + longestPiece - 1));
      const piece = text.slice(from, from + longestPiece - (isCut ? 1 : 0));
      this.reserve(piece.length * bytesPerUnit);
      this.at += this.part.write(piece, this.at);
      from += piece.length;
    }
  }

  value(value: unknown): void {
    this.text(JSON.stringify(value));
  }

  /** An object with these fields and others that follow: without the bracket that ends it. */
  startObject(fields: object): void {
    this.text(JSON.stringify(fields).slice(0, -1));
  }

  /** A list of what `write` writes of each item. */
  async list<T>(
    items: readonly T[],
    pace: Pace,
    write: (item: T, index: number) => Promise<void> | void,
  ): Promise<void> {
    this.text('[');
    for (const [index, item] of items.entries()) {
      if (index > 0) this.text(',');
      await write(item, index);
      if (pace.isFull()) await pace.turn();
    }
    this.text(']');
  }

  /** Any piece of the JSON, as UTF-8. */
  bytes(bytes: Buffer, from = 0, to = bytes.length): void {
    this.reserve(to - from);
    this.at += bytes.copy(this.part, this.at, from, to);
  }

  /** 10^-9 units as decimal text, without quotes. */
  decimal(nano: bigint): void {
    this.reserve(longestDecimal);
    this.at = putDecimal(this.part, this.at, nano);
  }

  /** What was written. Nothing may be written after it. */
  end<T>(): Json<T> {
    this.parts.push(this.part.subarray(0, this.at));
    return new Json<T>(this.parts);
  }

  private reserve(bytes: number): void {
    if (this.at + bytes <= this.part.length) return;
    this.parts.push(this.part.subarray(0, this.at));
    this.bytesBefore += this.at;
    if (this.bytesBefore > this.maxBytes) throw tooLarge(this.maxBytes);
    this.part = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(4 * this.part.length, largestPartBytes)));
    this.at = 0;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function tooLarge(maxBytes: number): AppError {
  const mib = Math.floor(maxBytes / 1024 / 1024);
  return invalidField(
    'interval',
    'maxBytes',
    `must be longer, or the range shorter: this report would be larger than ${mib} MiB`,
  );
}
