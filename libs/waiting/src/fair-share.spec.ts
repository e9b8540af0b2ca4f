import { expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { fairShare } from './fair-share.js';

/** What is free once holders have taken and given back as told; each number names a holder, and how far it goes. */
function freeAfter(all: number, most: number, turns: readonly (readonly [holder: number, down: number])[]): number {
  const held = new Map<number, number>();
  let free = all;
  for (const [holder, down] of turns) {
    let own = held.get(holder) ?? 0;
    for (const end = Math.min(own, down); own > end; own -= 1) free += 1;
    for (; own < fairShare({ all, free, most }); own += 1) free -= 1;
    held.set(holder, own);
  }
  return free;
}

const untouched = Number.MAX_SAFE_INTEGER;

it('law: of ports, 200 teams that take all they can, in whatever order, leave some; of sessions 50 do', () => {
  const cases = fc.constantFrom([2_682, 200, 200] as const, [1_024, 256, 50] as const);
  const turns = fc.array(fc.tuple(fc.nat({ max: 199 }), fc.nat({ max: 300 })), { maxLength: 200 });
  fc.assert(
    fc.property(cases, turns, ([all, most, holders], taken) => {
      const each = Array.from({ length: holders }, (_, holder) => [holder, untouched] as const);
      const before = taken.map(([holder, down]) => [holder % holders, down] as const);
      expect(freeAfter(all, most, [...before, ...each])).toBeGreaterThan(0);
    }),
    runs(50),
  );
});

it('is all that one may have while half is free, then less and less, one at least, and none where none is free', () => {
  const shares = [2_682, 1_341, 1_000, 670, 335, 100, 1, 0].map((free) => fairShare({ all: 2_682, free, most: 200 }));
  expect(shares).toEqual([200, 200, 82, 24, 3, 1, 1, 0]);
});
