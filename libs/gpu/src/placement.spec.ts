import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import { boardNamed, boards, type SliceProfile } from './boards.js';
import { maskOf, place, placeAll, room } from './placement.js';
import { mpsProfile } from './profiles.js';

const a100 = boardNamed('A100-80GB')!;
const a30 = boardNamed('A30-24GB')!;
const [oneG, oneGDouble, twoG, threeG, fourG, sevenG] = a100.migProfiles as [
  SliceProfile,
  SliceProfile,
  SliceProfile,
  SliceProfile,
  SliceProfile,
  SliceProfile,
];

/** The slots of one slice, written without masks: what the laws are checked against shares nothing with the code. */
const slotsOf = ({ size }: SliceProfile, start: number) => Array.from({ length: size }, (_, at) => start + at);
const slotsIn = (mask: bigint) =>
  new Set([...mask.toString(2)].toReversed().flatMap((bit, at) => (bit === '1' ? [at] : [])));

/** Every way to place the list, in its order, by trying each start for each. */
function* everyWay(
  profiles: readonly SliceProfile[],
  taken: ReadonlySet<number>,
): Generator<{ starts: number[]; taken: ReadonlySet<number> }> {
  const [first, ...rest] = profiles;
  if (!first) return void (yield { starts: [], taken });
  for (const start of first.starts) {
    const slots = slotsOf(first, start);
    if (slots.some((slot) => taken.has(slot))) continue;
    for (const way of everyWay(rest, new Set([...taken, ...slots])))
      yield { starts: [start, ...way.starts], taken: way.taken };
  }
}

const fits = (profiles: readonly SliceProfile[], taken: ReadonlySet<number>) => !everyWay(profiles, taken).next().done;

function mostOf(profile: SliceProfile, taken: ReadonlySet<number>): number {
  let most = 0;
  while (fits(new Array<SliceProfile>(most + 1).fill(profile), taken)) most += 1;
  return most;
}

function expectPlaced(profiles: readonly SliceProfile[], starts: readonly number[], occupied: bigint): void {
  expect(starts).toHaveLength(profiles.length);
  const taken = slotsIn(occupied);
  for (const [at, profile] of profiles.entries()) {
    expect(profile.starts).toContain(starts[at]);
    for (const slot of slotsOf(profile, starts[at]!)) {
      expect(taken).not.toContain(slot);
      taken.add(slot);
    }
  }
}

/** A GPU with something on it, and some of its profiles. */
const gpu = fc
  .constantFrom(...boards.filter(({ memorySlices }) => memorySlices > 0), a100, a30)
  .chain(({ memorySlices, migProfiles }) =>
    fc.record({
      occupied: fc.bigInt({ min: 0n, max: (1n << BigInt(memorySlices)) - 1n }),
      list: fc.array(fc.constantFrom(...migProfiles), { maxLength: 8 }),
      sold: fc.subarray([...migProfiles], { minLength: 1 }),
      profile: fc.constantFrom(...migProfiles),
      count: fc.integer({ min: 1, max: 8 }),
    }),
  );

describe('a mask', () => {
  it('has the bits of its slots, up to the 48th and beyond 32', () => {
    expect([maskOf(0, 8), maskOf(4, 2), maskOf(47, 1), maskOf(0, 0)]).toEqual([0xffn, 0x30n, 1n << 47n, 0n]);
  });
});

describe('room', () => {
  it('law: is the greatest number that can be placed at all, whatever is occupied', () => {
    for (const { memorySlices, migProfiles } of [a100, a30]) {
      for (let occupied = 0n; occupied < 1n << BigInt(memorySlices); occupied += 1n) {
        for (const profile of migProfiles) expect(room(profile, occupied)).toBe(mostOf(profile, slotsIn(occupied)));
      }
    }
  });

  it('of replicas is what is free of them, however many', () => {
    const shares = mpsProfile(a100, 48);
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << 48n) - 1n }), (occupied) => {
        expect(room(shares, occupied)).toBe(48 - slotsIn(occupied).size);
      }),
    );
  });

  it('is of the profile asked for, also where another one begins at the very same list of slots', () => {
    const starts = [0];
    expect([1, 8].map((size) => room({ size, starts }, 2n))).toEqual([1, 0]);
  });
});

describe('placing a list', () => {
  it('law: finds a fit if and only if one exists, in whatever order it is listed', () => {
    fc.assert(
      fc.property(
        gpu.chain((chosen) =>
          fc
            .shuffledSubarray(chosen.list, { minLength: chosen.list.length })
            .map((shuffled) => ({ ...chosen, shuffled })),
        ),
        ({ list, shuffled, occupied }) => {
          const isPossible = fits(list, slotsIn(occupied));
          for (const profiles of [list, shuffled]) {
            const starts = placeAll(profiles, occupied);
            expect(starts !== null).toBe(isPossible);
            if (starts) expectPlaced(profiles, starts, occupied);
          }
        },
      ),
      runs(500),
    );
  });

  it('is about intervals and not about sums', () => {
    expect(placeAll([twoG, oneG, fourG], 0n)).not.toBeNull();
    expect(placeAll([threeG, threeG], 0n)).not.toBeNull();
    expect(placeAll([fourG, fourG], 0n)).toBeNull();
    expect(placeAll([twoG, twoG, twoG, twoG], 0n)).toBeNull();
    expect(placeAll([], 0xffn)).toEqual([]);
  });

  it('goes back on a start that left no room for a later one', () => {
    const profiles = [oneG, oneG, oneG, oneG, oneGDouble, twoG];
    expectPlaced(profiles, placeAll(profiles, 0n) ?? [], 0n);
  });

  it('says at once that one tenant more than there are replicas does not fit', () => {
    for (const replicas of [2, 24, 48]) {
      const shares = mpsProfile(a100, replicas);
      const tenants = new Array<SliceProfile>(replicas).fill(shares);
      expect(placeAll(tenants, 0n)).toHaveLength(replicas);
      expect(placeAll([...tenants, shares], 0n)).toBeNull();
      expect(placeAll(tenants, 1n)).toBeNull();
    }
  });
});

describe('placing slices of one profile', () => {
  it('law: succeeds if and only if there is room for them, and never where something is', () => {
    fc.assert(
      fc.property(gpu, ({ profile, count, occupied, sold }) => {
        const starts = place(profile, count, occupied, sold);
        expect(starts !== null).toBe(count <= room(profile, occupied));
        if (starts) expectPlaced(new Array<SliceProfile>(count).fill(profile), starts, occupied);
      }),
      runs(500),
    );
  });

  it('law: no other way to place them leaves more room for the largest of what is sold, then for the next', () => {
    fc.assert(
      fc.property(gpu, ({ profile, count, occupied, sold }) => {
        const starts = place(profile, count, occupied, sold);
        if (!starts) return;
        const largestFirst = sold.toSorted(
          (one, other) => other.size - one.size || one.starts.length - other.starts.length,
        );
        const roomsLeft = (taken: ReadonlySet<number>) => largestFirst.map((other) => mostOf(other, taken)).join(' ');
        const chosen = new Set([...slotsIn(occupied), ...starts.flatMap((start) => slotsOf(profile, start))]);
        const ways = [...everyWay(new Array<SliceProfile>(count).fill(profile), slotsIn(occupied))];
        const masks = new Map(
          ways.map(({ taken }) => [[...taken].toSorted((one, other) => one - other).join(), taken]),
        );
        // No count has two digits, so that the text compares as the list of counts does.
        const best = [...masks.values()].map(roomsLeft).reduce((one, other) => (other > one ? other : one));
        expect(roomsLeft(chosen)).toBe(best);
      }),
      runs(150),
    );
  });

  it.each([
    ['3g, for a 4g', threeG, fourG, 1],
    ['2g, for a 4g', twoG, fourG, 1],
    ['1g, for a 4g', oneG, fourG, 1],
    ['1g, for three 2g', oneG, twoG, 3],
    ['double 1g, for three 2g', oneGDouble, twoG, 3],
    ['4g, for a 3g', fourG, threeG, 1],
  ])('on an empty GPU leaves room beside a %s', (_, profile, other, count) => {
    const [start] = place(profile, 1, 0n, a100.migProfiles)!;
    expect(room(other, maskOf(start!, profile.size))).toBe(count);
    expect(room(sevenG, maskOf(start!, profile.size))).toBe(0);
  });

  it('looks at all of them together: the best place of one is not always a part of the best for two', () => {
    const sold = [oneG, oneGDouble];
    const used = place(oneG, 2, 0n, sold)!.reduce((mask, start) => mask | maskOf(start, 1), 0n);
    expect(room(oneGDouble, used)).toBe(3);
  });

  it('keeps one large interval rather than more of the small ones', () => {
    expect(place(oneGDouble, 1, 1n, [oneG, threeG])).toEqual([2]);
    expect(place(oneGDouble, 1, 1n, [oneG])).toEqual([6]);
  });

  it('takes the first free replicas, and hands out a list of its own each time', () => {
    const shares = mpsProfile(a100, 48);
    expect(place(shares, 3, 0b101n, [shares])).toEqual([1, 3, 4]);
    expect(place(shares, 48, 1n, [shares])).toBeNull();
    place(threeG, 1, 0n, a100.migProfiles)!.push(7);
    expect(place(threeG, 1, 0n, a100.migProfiles)).toEqual([4]);
  });
});
