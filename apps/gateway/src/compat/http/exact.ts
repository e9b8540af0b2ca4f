/** A number in an answer, written as the decimal text that it is: a float would change the digits of large amounts. */
export interface ExactNumber {
  readonly rawJSON: string;
}

/** Of ECMAScript 2026, and not yet in TypeScript's library. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => ExactNumber };

const decimals = 9;

/** 10^-9 units of a decimal text of the main API with at most 9 decimals. */
export function nanoOf(decimal: string): bigint {
  const [, sign = '', units = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(decimal) ?? [];
  return BigInt(`${sign}${units}${fraction.padEnd(decimals, '0')}`);
}

/** The same of a quantity, which the main API has as a number of at most 9 decimals. */
export function quantityNanoOf(quantity: number): bigint {
  return nanoOf(quantity.toFixed(decimals));
}

/** The number of so many 10^-9 units. */
export function exactNumber(nano: bigint): ExactNumber {
  const digits = (nano < 0n ? -nano : nano).toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return rawJSON(`${nano < 0n ? '-' : ''}${digits.slice(0, -decimals)}${fraction === '' ? '' : `.${fraction}`}`);
}

export const zero = exactNumber(0n);
