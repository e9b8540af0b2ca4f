import { randomBytes } from 'node:crypto';

/** Before all ids, and the id of nothing (RFC 9562). */
export const nilId = '00000000-0000-0000-0000-000000000000';

let lastMs = 0;
let counter = 0;

/**
 * A UUID v7 (RFC 9562): 48 bits of Unix milliseconds, a 12-bit counter, 62 random bits. Each is greater than the one
 * before in this process, also within a millisecond and when the clock steps back, so that rows sort by when they were
 * made.
 */
export function newId(): string {
  const bytes = randomBytes(16);
  const nowMs = Date.now();
  if (nowMs > lastMs) {
    lastMs = nowMs;
    // The upper bit is left clear: at least 2048 ids follow before the millisecond is used up.
    counter = bytes.readUInt16BE(6) & 0x7ff;
  } else if (++counter > 0xfff) {
    lastMs += 1;
    counter = 0;
  }
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
