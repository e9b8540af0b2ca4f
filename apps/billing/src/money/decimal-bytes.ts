import { decimalOf } from './amounts.js';

const [zero, point] = ['0', '.'].map((sign) => sign.charCodeAt(0)) as [number, number];
const unit = 1_000_000_000;
const largestExact = BigInt(Number.MAX_SAFE_INTEGER);
/** More than the longest amount of a report takes. */
export const longestDecimal = 48;

/** Three digits of each number below 1,000. */
const triples = Uint8Array.from(
  Array.from({ length: 1_000 }, (_, value) => [...String(value).padStart(3, '0')].map(Number)).flat(),
  (digit) => zero + digit,
);

/**
 * Writes the decimal text of 10^-9 units, as `decimalOf` has it, at `at` in ASCII, where there must be room for
 * `longestDecimal` bytes. Returns the place behind it. Reports write tens of thousands, in a fraction of the time that
 * text takes which is made and then encoded.
 */
export function putDecimal(bytes: Uint8Array, at: number, nano: bigint): number {
  if (nano < 0n || nano > largestExact) return putText(bytes, at, decimalOf(nano));
  // Exact as a number: whole, below 2^53; and each half of it is below 2^31.
  const whole = Number(nano);
  const units = Math.floor(whole / unit);
  const fraction = whole - units * unit;
  const end = putWhole(bytes, at, units);
  return fraction === 0 ? end : putFraction(bytes, end, fraction);
}

function putWhole(bytes: Uint8Array, at: number, value: number): number {
  let end = at + 1;
  for (let rest = value; rest >= 10; rest = (rest / 10) | 0) end += 1;
  let rest = value;
  for (let place = end - 1; place >= at; place -= 1) {
    const next = (rest / 10) | 0;
    bytes[place] = zero + rest - next * 10;
    rest = next;
  }
  return end;
}

/** The point and nine digits, less the zeros at their end. */
function putFraction(bytes: Uint8Array, at: number, fraction: number): number {
  bytes[at] = point;
  const thousands = (fraction / 1_000) | 0;
  const millions = (thousands / 1_000) | 0;
  putTriple(bytes, at + 1, millions);
  putTriple(bytes, at + 4, thousands - millions * 1_000);
  putTriple(bytes, at + 7, fraction - thousands * 1_000);
  let end = at + 10;
  while (bytes[end - 1] === zero) end -= 1;
  return end;
}

function putTriple(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = triples[3 * value] ?? zero;
  bytes[at + 1] = triples[3 * value + 1] ?? zero;
  bytes[at + 2] = triples[3 * value + 2] ?? zero;
}

/** ASCII. */
function putText(bytes: Uint8Array, at: number, text: string): number {
  for (let index = 0; index < text.length; index += 1) bytes[at + index] = text.charCodeAt(index);
  return at + text.length;
}
