/** Money and quantities are counted in 10^-9 of their unit: `1.25` is 1_250_000_000n. */
export const nanoPerUnit = 1_000_000_000n;
const decimals = 9;
const decimalForm = /^-?\d+(?:\.\d{1,9})?$/;
const zeros = '0'.repeat(decimals);
const zero = '0'.charCodeAt(0);

/**
 * 10^-9 units of a decimal text with at most 9 decimals. Throws RangeError for any other text: it has been checked
 * before.
 */
export function nanoOf(decimal: string): bigint {
  if (!decimalForm.test(decimal))
    throw new RangeError(`Not a decimal number of at most ${decimals} decimals: ${decimal.slice(0, 60)}`);
  return decimal.startsWith('-') ? -BigInt(nanoDigitsOf(decimal.slice(1))) : BigInt(nanoDigitsOf(decimal));
}

/**
 * The same of a decimal text that is not negative, as its digits: `2.5` is `2500000000`, and `0` is `0`. For what is
 * only passed on.
 */
export function nanoDigitsOf(decimal: string): string {
  const point = decimal.indexOf('.');
  const digits =
    point < 0
      ? decimal + zeros
      : decimal.slice(0, point) + decimal.slice(point + 1) + zeros.slice(decimal.length - point - 1);
  let first = 0;
  while (first < digits.length - 1 && digits.charCodeAt(first) === zero) first += 1;
  return first === 0 ? digits : digits.slice(first);
}

/**
 * The shortest decimal text of 10^-9 units: `12.34`, `0`, `-0.000000001`. Reports write thousands, so it takes no
 * regular expression.
 */
export function decimalOf(nano: bigint): string {
  if (nano < 0n) return `-${decimalOf(-nano)}`;
  const digits = nano.toString().padStart(decimals + 1, '0');
  const at = digits.length - decimals;
  let end = digits.length;
  while (end > at && digits.charCodeAt(end - 1) === zero) end -= 1;
  return end === at ? digits.slice(0, at) : `${digits.slice(0, at)}.${digits.slice(at, end)}`;
}

/**
 * The JSON number nearest to 10^-9 units, which shows all 9 decimals up to some millions of units. The one way out of
 * exactness: for quantities of hours that are shown, and never for money.
 */
export function numberOf(nano: bigint): number {
  const isSafe = nano <= Number.MAX_SAFE_INTEGER && nano >= Number.MIN_SAFE_INTEGER;
  // Exact as a number: below 2^53 both are whole, and a quotient of such is rounded once.
  return isSafe ? Number(nano) / Number(nanoPerUnit) : Number(decimalOf(nano));
}
