/** A line, or a part of one, as the engine stores it: Podman cuts at 8192 bytes, Docker at 16 KiB. */
export interface LogPiece {
  /** UTC with nine decimals, whatever the engine's form. */
  readonly timestamp: string;
  /** Unix seconds of the timestamp. */
  readonly second: number;
  /** Without the line break. */
  readonly data: Buffer;
  readonly endsLine: boolean;
}

const stamp = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) /;
const longestStamp = 40;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** null where the engine has put no timestamp before it. */
export function parseLogPiece(data: Buffer): LogPiece | null {
  const found = stamp.exec(data.toString('latin1', 0, longestStamp));
  if (!found) return null;
  const [head, instant = '', fraction = '', zone = ''] = found;
  const ms = Date.parse(`${instant}${zone}`);
  if (Number.isNaN(ms)) return null;
  const endsLine = data.at(-1) === lineFeed;
  return {
    timestamp: `${new Date(ms).toISOString().slice(0, 19)}.${fraction.padEnd(9, '0')}Z`,
    second: ms / 1000,
    data: data.subarray(head.length, endsLine ? -1 : undefined),
    endsLine,
  };
}

/** The text of a line, at most so many bytes of UTF-8. */
export function messageOf(data: Buffer, longestBytes: number): { message: string; isCut: boolean } {
  const bytes = data.at(-1) === carriageReturn ? data.subarray(0, -1) : data;
  const text = decodeUpTo(bytes, longestBytes);
  // Each invalid byte becomes three.
  const message = Buffer.byteLength(text) > longestBytes ? decodeUpTo(Buffer.from(text), longestBytes) : text;
  return { message, isCut: bytes.length > longestBytes || message !== text };
}

/** Leaves out a character that the limit divides. */
function decodeUpTo(bytes: Buffer, longestBytes: number): string {
  const isWhole = bytes.length <= longestBytes;
  return new TextDecoder().decode(isWhole ? bytes : bytes.subarray(0, longestBytes), { stream: !isWhole });
}
