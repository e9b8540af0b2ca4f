/** numerator / denominator to the nearest whole number, a half upwards (−0.5 to 0). The denominator is positive. */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  return floorDivide(2n * numerator + denominator, 2n * denominator);
}

function floorDivide(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator < 0n && quotient * denominator !== numerator ? quotient - 1n : quotient;
}

/**
 * Rounds parts to whole numbers that add up to `total`: each part down, and then one more for those with the largest remainders, of equal
 * ones the earlier. So each is its exact part rounded down or up, and a part that is whole already stays as it is.
 *
 * Part i is `wholes[i] + rests[i] / denominator` for one denominator of less than 2^64 and each rest below it. `total` is the exact sum of the
 * parts rounded down or up; any other is a bug, and throws RangeError.
 */
export function largestRemainder(total: bigint, wholes: readonly bigint[], rests: readonly bigint[]): bigint[] {
  const rounded = wholes.slice();
  let missing = total;
  for (const whole of wholes) missing -= whole;
  if (missing === 0n) return rounded;
  const ascending = ascendingOf(rests);
  // A count.
  // eslint-disable-next-line atoll/exact-money
  const threshold = ascending[ascending.length - Number(missing)];
  if (!threshold) throw new RangeError('The parts do not add up to this total.');
  for (const rest of rests) if (rest > threshold) missing -= 1n;
  for (let index = 0; index < rests.length; index += 1) {
    const rest = rests[index] ?? 0n;
    if (rest < threshold || (rest === threshold && missing === 0n)) continue;
    if (rest === threshold) missing -= 1n;
    rounded[index] = (wholes[index] ?? 0n) + 1n;
  }
  return rounded;
}

/** A typed array sorts thousands in a third of the time, and takes longer to be made than a few take to be sorted. */
function ascendingOf(rests: readonly bigint[]): readonly bigint[] | BigUint64Array {
  return rests.length > 50 ? BigUint64Array.from(rests).sort() : rests.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}
