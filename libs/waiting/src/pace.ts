import type { Turns } from './turns.js';

/**
 * What is done of long work, such as a report or a whole listing, before others have the event loop: about a
 * millisecond. An item is a figure that is calculated or written, some 100 ns; an object that is made counts as
 * several.
 */
export const itemsPerSlice = 10_000;
const itemsPerObject = 5;
/** Of each comparison while a list is sorted there are some ten. */
const itemsPerSorted = 10;

/** Cuts long work for one caller into slices. */
export class Pace {
  private items = 0;

  constructor(
    /** One for each service of a process. */
    private readonly turns: Turns,
    /** Throws where the work has become pointless; asked between slices. */
    private readonly requireUse: () => void = () => undefined,
  ) {}

  /** Counts items that were worked on. True where the slice is full: `turn` is to be awaited before more is done. */
  isFull(items = 1): boolean {
    this.items += items;
    return this.items >= itemsPerSlice;
  }

  /** Ends a slice. */
  async turn(): Promise<void> {
    const { items } = this;
    this.items = 0;
    await this.turns.next(items);
    this.requireUse();
  }

  /** As `items.map`. */
  async map<T, Result>(items: readonly T[], resultOf: (item: T, index: number) => Result): Promise<Result[]> {
    const results: Result[] = [];
    for (const [index, item] of items.entries()) {
      results.push(resultOf(item, index));
      if (this.isFull(itemsPerObject)) await this.turn();
    }
    return results;
  }

  /** As `Map.groupBy`. */
  async groupBy<T, Key>(items: readonly T[], keyOf: (item: T) => Key): Promise<Map<Key, T[]>> {
    const groups = new Map<Key, T[]>();
    for (const item of items) {
      const key = keyOf(item);
      const group = groups.get(key);
      if (group) group.push(item);
      else groups.set(key, [item]);
      if (this.isFull(itemsPerObject)) await this.turn();
    }
    return groups;
  }

  /** As `items.toSorted`: stable. Long lists are sorted in runs, which are then merged. */
  async toSorted<T>(items: readonly T[], compare: (one: T, other: T) => number): Promise<T[]> {
    let runs: T[][] = [];
    for (let at = 0; at < items.length; at += runLength) {
      runs.push(items.slice(at, at + runLength).sort(compare));
      if (this.isFull(itemsPerSorted * Math.min(runLength, items.length))) await this.turn();
    }
    while (runs.length > 1) {
      const merged: T[][] = [];
      for (let at = 0; at < runs.length; at += 2)
        merged.push(await this.merge(runs[at] ?? [], runs[at + 1] ?? [], compare));
      runs = merged;
    }
    return runs[0] ?? [];
  }

  private async merge<T>(one: readonly T[], other: readonly T[], compare: (one: T, other: T) => number): Promise<T[]> {
    const merged: T[] = [];
    let [at, otherAt] = [0, 0];
    while (at < one.length || otherAt < other.length) {
      const isOther = at === one.length || (otherAt < other.length && compare(one[at] as T, other[otherAt] as T) > 0);
      merged.push((isOther ? other[otherAt++] : one[at++]) as T);
      if (this.isFull(2)) await this.turn();
    }
    return merged;
  }
}

const runLength = itemsPerSlice / itemsPerSorted;

/**
 * In lists that take a slice each: for what is asked of the database, so that neither a question nor its answer takes
 * long.
 */
export function* inChunks<T>(items: readonly T[]): Generator<T[]> {
  for (let at = 0; at < items.length; at += chunkLength) yield items.slice(at, at + chunkLength);
}

const chunkLength = itemsPerSlice / itemsPerObject;
