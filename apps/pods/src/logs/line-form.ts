/** Bytes of UTF-8 that a line may have. */
const mostLineBytes = 16 * 1024;

const cutMark = ' … [cut: a line has at most 16 KiB]';

/**
 * A line as stores keep it: well-formed Unicode without U+0000, which PostgreSQL cannot hold; what is longer than 16
 * KiB is cut, and says so. `isCut`: the driver has cut it already.
 */
export function storedMessage(message: string, isCut: boolean): string {
  const text = message.toWellFormed().replaceAll('\0', '\ufffd');
  const kept = cutAt(text, mostLineBytes);
  return isCut || kept.length < text.length ? kept + cutMark : kept;
}

/** Not within a character. */
function cutAt(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}
