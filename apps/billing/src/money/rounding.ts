import { itemsPerSlice, type Pace } from '@atoll/waiting';

/** numerator / denominator to the nearest whole number, a half upwards (−0.5 to 0). The denominator is positive. */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  return floorDivide(2n * numerator + denominator, 2n * denominator);
}

function floorDivide(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator < 0n && quotient * denominator !== numerator ? quotient - 1n : quotient;
}

/**
 * Rounds parts to whole numbers that add up to `total`: each part down, and then one more for those with the largest
 * remainders, of equal ones the earlier. So each is its exact part rounded down or up, and a part that is whole already
 * stays as it is.
 *
 * Part i is `wholes[i] + rests[i] / denominator` for one denominator of at most 2^53, each rest being whole and below
 * it. `total` is the exact sum of the parts rounded down or up; any other is a bug, and throws RangeError.
 */
export async function largestRemainder(
  total: bigint,
  wholes: readonly bigint[],
  rests: ArrayLike<number>,
  pace: Pace,
): Promise<readonly bigint[]> {
  let missingNano = total;
  for (const whole of wholes) {
    missingNano -= whole;
    if (pace.isFull()) await pace.turn();
  }
  if (missingNano === 0n) return wholes;
  // Exact as a number: a count.
  const raised = await largestOf(rests, Number(missingNano), pace);
  const rounded = wholes.slice();
  for (const n of raised) rounded[n] = (rounded[n] ?? 0n) + 1n;
  return rounded;
}

/** A few are looked for one by one. */
const few = 32;

/**
 * The places of so many of the largest rests, of equal ones the earlier. Throws RangeError where so many are not
 * above 0.
 */
export async function largestOf(rests: ArrayLike<number>, count: number, pace: Pace): Promise<readonly number[]> {
  const found = rests.length <= few ? largestOfFew(rests, count) : await largestOfMany(rests, count, pace);
  if (found.length !== count) throw new RangeError('The parts do not add up to this total.');
  return found;
}

function largestOfFew(rests: ArrayLike<number>, count: number): number[] {
  const left = Float64Array.from(rests);
  const found: number[] = [];
  while (found.length < count) {
    let largest = 0;
    for (let n = 1; n < left.length; n += 1) if ((left[n] ?? 0) > (left[largest] ?? 0)) largest = n;
    if (!left[largest]) break;
    left[largest] = 0;
    found.push(largest);
  }
  return found;
}

async function largestOfMany(rests: ArrayLike<number>, count: number, pace: Pace): Promise<number[]> {
  const ascending = await ascendingOf(rests, pace);
  const threshold = ascending[ascending.length - count] ?? 0;
  let ofThreshold = count;
  for (let at = ascending.length - 1; (ascending[at] ?? 0) > threshold; at -= 1) ofThreshold -= 1;
  const found: number[] = [];
  for (let n = 0; n < rests.length && threshold > 0; n += 1) {
    if (pace.isFull()) await pace.turn();
    const rest = rests[n] ?? 0;
    if (rest < threshold || (rest === threshold && ofThreshold === 0)) continue;
    if (rest === threshold) ofThreshold -= 1;
    found.push(n);
  }
  return found;
}

/** A typed array sorts thousands in a millisecond; more than that are sorted in slices. */
async function ascendingOf(rests: ArrayLike<number>, pace: Pace): Promise<ArrayLike<number>> {
  if (rests.length > itemsPerSlice) return pace.toSorted(Array.from(rests), (one, other) => one - other);
  if (pace.isFull(rests.length)) await pace.turn();
  return Float64Array.from(rests).sort();
}
