import type { SliceProfile } from './boards.js';

/**
 * Placement on one GPU. Slots are bits of a mask, bit i is slot i: with MIG its memory slices, else its replicas. Fitting is about intervals and not about
 * sums: a 2g begins at slot 0, 2 or 4, and what is placed cannot be moved.
 */

type Shape = Pick<SliceProfile, 'size' | 'starts'>;

export function maskOf(start: number, size: number): bigint {
  return ((1n << BigInt(size)) - 1n) << BigInt(start);
}

const rooms = new WeakMap<readonly number[], Map<bigint, number>>();

/** How many more slices of the profile the free slots can hold at most. */
export function room(profile: Shape, occupied: bigint): number {
  // Keyed by the list of starts, which every profile has of its own.
  let known = rooms.get(profile.starts);
  if (!known) rooms.set(profile.starts, (known = new Map<bigint, number>()));
  let count = known.get(occupied);
  if (count === undefined) {
    count = placedFirst(profile, occupied, Infinity).length;
    known.set(occupied, count);
  }
  return count;
}

/** Intervals of one size: whoever takes the one that ends first, again and again, takes the most of them. */
function placedFirst({ size, starts }: Shape, occupied: bigint, limit: number): number[] {
  const taken: number[] = [];
  let used = occupied;
  for (const start of starts) {
    if (taken.length >= limit) break;
    const mask = maskOf(start, size);
    if ((used & mask) !== 0n) continue;
    taken.push(start);
    used |= mask;
  }
  return taken;
}

/**
 * Where `count` slices of the profile begin, each placed so that as much as can be stays free for the largest of what is sold, then for the next; null if
 * and only if they do not fit.
 */
export function place(profile: SliceProfile, count: number, occupied: bigint, sold: readonly SliceProfile[]): number[] | null {
  if (room(profile, occupied) < count) return null;
  if (profile.size === 1 && profile.starts.length > 8) return placedFirst(profile, occupied, count);
  const placed: number[] = [];
  let used = occupied;
  for (let left = count; left > 0; left -= 1) {
    const start = bestStart(profile, used, sold, left);
    placed.push(start);
    used |= maskOf(start, profile.size);
  }
  return placed;
}

/** Among the starts that leave room for the rest of the request. There is one, as there is room for all of it. */
function bestStart(profile: SliceProfile, used: bigint, sold: readonly SliceProfile[], left: number): number {
  const largestFirst = [...sold].sort((one, other) => other.size - one.size || one.starts.length - other.starts.length);
  const candidates = profile.starts
    .filter((start) => (used & maskOf(start, profile.size)) === 0n)
    .map((start) => ({ start, after: used | maskOf(start, profile.size) }))
    .filter(({ after }) => room(profile, after) >= left - 1)
    .map(({ start, after }) => ({ start, rooms: largestFirst.map((other) => room(other, after)) }));
  const best = candidates.reduce((one, other) => (compare(other.rooms, one.rooms) >= 0 ? other : one));
  return best.start;
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [at, count] of one.entries()) {
    const difference = count - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** A start for each profile of the list, in its order; null if and only if no arrangement holds them all. */
export function placeAll(profiles: readonly SliceProfile[], occupied: bigint): number[] | null {
  // The largest first: what fits nowhere is found out soon.
  const order = profiles.map((profile, at) => ({ profile, at })).sort((one, other) => other.profile.size - one.profile.size);
  const starts = new Array<number>(profiles.length).fill(0);
  const dead = new Set<string>();
  const search = (depth: number, used: bigint, from: number): boolean => {
    const next = order[depth];
    if (!next) return true;
    const key = `${depth} ${used} ${from}`;
    if (dead.has(key)) return false;
    for (const start of next.profile.starts) {
      const mask = maskOf(start, next.profile.size);
      if (start < from || (used & mask) !== 0n) continue;
      starts[next.at] = start;
      // Slices of one profile are alike: only in ascending order, or the same arrangement is tried again and again.
      const isSame = order[depth + 1]?.profile.name === next.profile.name;
      if (search(depth + 1, used | mask, isSame ? start + 1 : 0)) return true;
    }
    dead.add(key);
    return false;
  };
  return search(0, occupied, 0) ? starts : null;
}
