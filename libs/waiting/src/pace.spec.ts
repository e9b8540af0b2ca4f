import { describe, expect, it } from '@jest/globals';
import { array, assert, asyncProperty, integer, nat, record } from 'fast-check';
import { inChunks, itemsPerSlice, Pace } from './pace.js';
import { Turns } from './turns.js';

/** Turns of the event loop that went by until the work was done. */
async function loopTurnsDuring(work: Promise<unknown>): Promise<number> {
  const end = { isDone: false };
  void work.finally(() => (end.isDone = true));
  let turns = 0;
  while (!end.isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    turns += 1;
  }
  return turns;
}

describe('long work', () => {
  it('is done in slices, with turns of the event loop for others between them', async () => {
    const pace = new Pace(new Turns());
    const work = async () => {
      for (let item = 0; item < 20 * itemsPerSlice; item += 1) if (pace.isFull()) await pace.turn();
    };
    expect(await loopTurnsDuring(work())).toBeGreaterThanOrEqual(20);
  });

  it('of many shares each turn’s one slice: there is as little of it in a turn as of one alone', async () => {
    const turns = new Turns();
    let inThisTurn = 0;
    const mostInATurn = { slices: 0 };
    let isDone = false;
    const count = () => {
      mostInATurn.slices = Math.max(mostInATurn.slices, inThisTurn);
      inThisTurn = 0;
      if (!isDone) setImmediate(count);
    };
    count();
    const done: number[] = [];
    const work = async (name: number) => {
      for (let slice = 0; slice < 30; slice += 1) {
        await turns.next(0);
        inThisTurn += 1;
      }
      done.push(name);
    };
    await Promise.all([0, 1, 2, 3, 4].map(work));
    isDone = true;
    expect(mostInATurn.slices).toBe(1);
    // In turn: whoever began first is done first.
    expect(done).toEqual([0, 1, 2, 3, 4]);
  });

  it('ends between two slices where it has become pointless', async () => {
    const pace = new Pace(new Turns(), () => {
      throw new Error('late');
    });
    await expect(pace.map(Array.from({ length: itemsPerSlice }), () => 0)).rejects.toThrow('late');
  });

  it('maps, groups, sorts and chunks as the lists themselves do', async () => {
    const items = array(record({ key: nat(20), value: integer() }), { maxLength: 200 });
    await assert(
      asyncProperty(items, nat(40), async (drawn, copies) => {
        // Some are longer than a slice.
        const all = Array.from({ length: copies * copies }).flatMap(() => drawn);
        const pace = new Pace(new Turns());
        const compare = (one: { key: number }, other: { key: number }) => one.key - other.key;
        expect(await pace.map(all, ({ value }, index) => value + index)).toEqual(
          all.map(({ value }, index) => value + index),
        );
        expect(await pace.groupBy(all, ({ key }) => key)).toEqual(Map.groupBy(all, ({ key }) => key));
        expect(await pace.toSorted(all, compare)).toEqual(all.toSorted(compare));
        expect([...inChunks(all)].flat()).toEqual(all);
      }),
      { numRuns: 20 },
    );
  });
});
