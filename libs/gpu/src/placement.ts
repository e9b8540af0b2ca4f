import type { SliceProfile } from './boards.js';

/**
 * Placement on one GPU. Slots are bits of a mask, bit i is slot i: with MIG its memory slices, else its replicas.
 * Fitting is about intervals and not about sums: a 2g begins at slot 0, 2 or 4, and what is placed cannot be moved.
 */

type Shape = Pick<SliceProfile, 'size' | 'starts'>;

/** More starts than this no MIG profile has: they are replicas, of which one is as good as another. */
const mostMigStarts = 8;

/** The mask of the `size` slots from slot `start` on. */
export function maskOf(start: number, size: number): bigint {
  return ((1n << BigInt(size)) - 1n) << BigInt(start);
}

/**
 * What was found out of a profile. Of MIG alone, where a GPU has 256 masks; of replicas, where it has 2^48, only the
 * masks of their own.
 */
interface Knowledge {
  /** Of one slice at each of the starts. */
  readonly masks: readonly bigint[];
  /** By mask. */
  readonly rooms: Map<bigint, number>;
  /** By what is sold besides, then by count and mask. */
  readonly places: WeakMap<readonly SliceProfile[], Map<string, readonly number[]>>;
}
const knowledge = new WeakMap<Shape, Knowledge>();

function knownOf(profile: Shape): Knowledge {
  let known = knowledge.get(profile);
  if (!known) {
    known = {
      masks: profile.starts.map((start) => maskOf(start, profile.size)),
      rooms: new Map(),
      places: new WeakMap(),
    };
    knowledge.set(profile, known);
  }
  return known;
}

/** How many more slices of the profile the free slots can hold at most. */
export function room(profile: Shape, occupied: bigint): number {
  if (profile.starts.length > mostMigStarts) return firstFree(profile, occupied, Infinity).length;
  const { rooms } = knownOf(profile);
  let count = rooms.get(occupied);
  if (count === undefined) {
    count = firstFree(profile, occupied, Infinity).length;
    rooms.set(occupied, count);
  }
  return count;
}

/** Intervals of one size: repeatedly taking the one that ends first takes the most of them. */
function firstFree(profile: Shape, occupied: bigint, limit: number): number[] {
  const { masks } = knownOf(profile);
  const taken: number[] = [];
  let used = occupied;
  for (const [at, start] of profile.starts.entries()) {
    if (taken.length >= limit) break;
    const mask = masks[at] ?? 0n;
    if ((used & mask) !== 0n) continue;
    taken.push(start);
    used |= mask;
  }
  return taken;
}

/**
 * Where `count` slices of the profile begin, ascending; null if and only if they do not fit. Of all ways to place them
 * it is the one that leaves most room for the largest of what is `sold`, then for the next; of two of one size, first
 * for the one that can begin at fewer slots. So a 3g on an empty GPU leaves room for a 4g. Among equals the last: 4g
 * and 7g begin at 0.
 */
export function place(
  profile: SliceProfile,
  count: number,
  occupied: bigint,
  sold: readonly SliceProfile[],
): number[] | null {
  if (room(profile, occupied) < count) return null;
  if (profile.starts.length > mostMigStarts) return firstFree(profile, occupied, count);
  const { places } = knownOf(profile);
  let known = places.get(sold);
  if (!known) places.set(sold, (known = new Map<string, readonly number[]>()));
  const key = `${count} ${occupied}`;
  let starts = known.get(key);
  if (!starts) known.set(key, (starts = best(arrangements(profile, count, occupied, 0), sold)));
  return [...starts];
}

interface Arrangement {
  readonly starts: readonly number[];
  /** The mask with these slices in it. */
  readonly used: bigint;
}

function best(all: readonly Arrangement[], sold: readonly SliceProfile[]): readonly number[] {
  const largestFirst = sold.toSorted((one, other) => other.size - one.size || one.starts.length - other.starts.length);
  const rated = all.map(({ starts, used }) => ({ starts, rooms: largestFirst.map((profile) => room(profile, used)) }));
  return rated.reduce((one, other) => (compare(other.rooms, one.rooms) >= 0 ? other : one)).starts;
}

/**
 * Every way to place `count` slices of a MIG profile: at most 35. One slice after the other would not do, as the best
 * place of one depends on the next.
 */
function arrangements(profile: Shape, count: number, used: bigint, from: number): Arrangement[] {
  if (count === 0) return [{ starts: [], used }];
  return profile.starts.flatMap((start, at) => {
    const mask = maskOf(start, profile.size);
    if (at < from || (used & mask) !== 0n) return [];
    return arrangements(profile, count - 1, used | mask, at + 1).map((rest) => ({
      starts: [start, ...rest.starts],
      used: rest.used,
    }));
  });
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [at, count] of one.entries()) {
    const difference = count - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * A start for each profile of the list, in its order; null if and only if no arrangement holds them all, whatever the
 * order they are listed in.
 */
export function placeAll(profiles: readonly SliceProfile[], occupied: bigint): number[] | null {
  // The largest first: what fits nowhere is found out soon. Those of one profile together.
  const order = profiles
    .map((profile, at) => ({ profile, at }))
    .sort((one, other) => other.profile.size - one.profile.size || one.profile.name.localeCompare(other.profile.name));
  const isSame = (depth: number, other: number) => order[depth]?.profile.name === order[other]?.profile.name;
  const starts = new Array<number>(profiles.length).fill(0);
  const search = (depth: number, used: bigint, from: number): boolean => {
    const next = order[depth];
    if (!next) return true;
    let alike = 1;
    while (depth + alike < order.length && isSame(depth, depth + alike)) alike += 1;
    // Without it, one tenant more than there are replicas is found not to fit only after all of the 2^48 ways are
    // tried.
    if (room(next.profile, used) < alike) return false;
    for (const start of next.profile.starts) {
      const mask = maskOf(start, next.profile.size);
      if (start < from || (used & mask) !== 0n) continue;
      starts[next.at] = start;
      // Slices of one profile are alike: only in ascending order, or the same arrangement is tried again and again.
      if (search(depth + 1, used | mask, alike > 1 ? start + 1 : 0)) return true;
    }
    return false;
  };
  return search(0, occupied, 0) ? starts : null;
}
