import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lookAround } from './look-around.js';

const most = 8;

/** The looks that follow each other at the same items. */
function looksAt(names: readonly string[], count: number) {
  let last = '';
  return Array.from({ length: count }, () => {
    const { from, others } = lookAround(
      names.map((name) => ({ name })),
      last,
      most,
    )!;
    last = others.at(-1)?.name ?? '';
    return [from, ...others].map(({ name }) => name);
  });
}

const namesOf = (minLength: number, maxLength: number) => fc.uniqueArray(fc.uuid(), { minLength, maxLength });

it('law: each item is tried with others within ⌈n / most⌉ + 1 looks, at most so many at once', () => {
  fc.assert(
    fc.property(namesOf(2, 60), (names) => {
      const looks = looksAt(names, Math.ceil(names.length / most) + 1);
      expect(new Set(looks.flat())).toEqual(new Set(names));
      for (const look of looks) {
        expect(new Set(look).size).toBe(look.length);
        expect(look.length).toBe(Math.min(names.length, most + 1));
      }
    }),
  );
});

it('law: of items that one look holds, n looks try each pair in both directions', () => {
  fc.assert(
    fc.property(namesOf(2, most + 1), (names) => {
      const looks = looksAt(names, names.length);
      expect(looks.map(([from]) => from).toSorted()).toEqual(names.toSorted());
      for (const look of looks) expect(look.toSorted()).toEqual(names.toSorted());
    }),
  );
});

it('goes on at the same place where items came or went meanwhile', () => {
  const named = (...names: string[]) => names.map((name) => ({ name }));
  expect(lookAround(named('e', 'a', 'c', 'b'), 'c', 2)).toEqual({ from: { name: 'c' }, others: named('e', 'a') });
  expect(lookAround(named('e', 'a', 'b'), 'c', 2)).toEqual({ from: { name: 'e' }, others: named('a', 'b') });
  expect(lookAround(named('a', 'b'), 'c', 2)).toEqual({ from: { name: 'a' }, others: named('b') });
});

it('is none where there are fewer than two', () => {
  expect(lookAround([], '', most)).toBeNull();
  expect(lookAround([{ name: 'a' }], '', most)).toBeNull();
});
