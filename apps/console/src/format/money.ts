/** Money of the platform: decimal strings with at most 9 decimals. Sums are exact, in billionths. */

const decimals = 9;

/** `"1.5"` is `1500000000n`. Throws for what is no decimal. */
export function billionths(text: string): bigint {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) throw new RangeError(`${text} is not an amount`);
  const value = BigInt(whole) * 10n ** 9n + BigInt(fraction.padEnd(decimals, '0') || '0');
  return sign ? -value : value;
}

/** The other way round: `1500000000n` is `"1.5"`. */
export function decimalText(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -decimals)}${fraction && `.${fraction}`}`;
}

export function sum(amounts: readonly string[]): string {
  return decimalText(amounts.reduce((total, amount) => total + billionths(amount), 0n));
}

/** For pixels alone. */
export function approximate(amount: string): number {
  return Number(amount);
}

/**
 * Rounds amounts to `digits` decimals so that they add up to their rounded total: each is rounded down, and what is
 * left goes, a unit each, to those that lost most (largest remainder, as the platform's own reports do at 9 decimals).
 * None is further than one unit from its exact value.
 */
export function roundToAddUp(amounts: readonly string[], digits: number, total: string = sum(amounts)): string[] {
  const unit = 10n ** BigInt(decimals - digits);
  const exact = amounts.map(billionths);
  const floors = exact.map((value) => floorDivide(value, unit));
  const wanted = roundHalfUp(billionths(total), unit);
  let left = wanted - floors.reduce((all, value) => all + value, 0n);
  const byRemainder = exact
    .map((value, at) => ({ at, remainder: value - (floors[at] ?? 0n) * unit }))
    .toSorted((a, b) => (a.remainder === b.remainder ? a.at - b.at : a.remainder > b.remainder ? -1 : 1));
  for (const { at } of byRemainder) {
    if (left <= 0n) break;
    floors[at] = (floors[at] ?? 0n) + 1n;
    left -= 1n;
  }
  return floors.map((value) => decimalText(value * unit));
}

function roundHalfUp(value: bigint, unit: bigint): bigint {
  return floorDivide(value + unit / 2n, unit);
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient;
}
