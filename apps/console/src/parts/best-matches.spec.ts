import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { bestMatches, mostShown } from './best-matches.js';

const named = (...labels: readonly string[]) => labels.map((label) => ({ value: label, label }));
const numbered = (count: number) => named(...Array.from({ length: count }, (_, at) => `p-${at + 1}`));
const labelsOf = (choices: ReturnType<typeof named>, ...rest: readonly string[]) =>
  bestMatches(choices, ...rest).shown.map(({ label }) => label);

describe('of many choices', () => {
  it('law: those that contain what was typed are shown, at most 100 of them, and the rest of them is counted', () => {
    fc.assert(
      fc.property(fc.nat({ max: 300 }), fc.constantFrom('', ' ', '1', 'P-1', '-2', 'p-29', 'x'), (count, typed) => {
        const choices = numbered(count);
        const matches = choices.filter(({ label }) => label.includes(typed.trim().toLowerCase()));
        const { shown, more } = bestMatches(choices, typed);
        expect(shown).toHaveLength(Math.min(mostShown, matches.length));
        expect(new Set([...matches, ...shown]).size).toBe(matches.length);
        expect(new Set(shown).size).toBe(shown.length);
        expect(shown.length + more).toBe(matches.length);
      }),
    );
  });

  it('law: while nothing is typed, the chosen one is shown, and so is the first, by which the choice is undone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), (count, at) => {
        const choices = numbered(count);
        const chosen = `p-${(at % count) + 1}`;
        expect(labelsOf(choices, '', chosen)).toEqual(expect.arrayContaining(['p-1', chosen]));
      }),
    );
  });

  it('the best come first: what was typed, then what begins with it', () => {
    expect(labelsOf(named('gpu-p-19', 'p-190', 'p-19', 'p-191', 'p-2'), 'p-19')).toEqual([
      ...['p-19', 'p-190', 'p-191', 'gpu-p-19'],
    ]);
    expect(labelsOf(numbered(2_000), 'p-1999', 'p-1')).toEqual(['p-1999']);
  });

  it('they are found without accents and case, and by their details', () => {
    const choices = [
      { value: '1', label: 'Équipe Ångström', detail: 'Owner' },
      { value: '2', label: 'Nimbus', detail: 'Member' },
    ];
    for (const typed of ['equipe', 'ANGSTROM', 'owner']) expect(labelsOf(choices, typed)).toEqual(['Équipe Ångström']);
  });

  it('all of a few are shown in their own order, wherever the chosen one stands', () => {
    const choices = numbered(mostShown);
    expect(bestMatches(choices, '', `p-${mostShown}`)).toEqual({ shown: choices, more: 0 });
  });
});
