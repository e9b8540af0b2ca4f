import { expect, it } from '@jest/globals';
import { array, assert, constant, integer, oneof, property, record } from 'fast-check';
import { runs } from '@atoll/testing';
import type { Idleness } from '../model/idleness.js';
import { afterLook, maxGapMs, warnMs, type Look, type Verdict } from './idle-looks.js';

const rule = record({ minutes: integer({ min: 1, max: 40 }), gpu_below_percent: integer({ min: 1, max: 100 }) });
const steps = array(
  record({
    afterMs: oneof(constant(60_000), constant(maxGapMs), constant(maxGapMs + 1), integer({ min: 1, max: 400_000 })),
    peakPercent: oneof(constant(null), constant(0), integer({ min: 0, max: 100 })),
  }),
  { maxLength: 60 },
);

function looksOf(given: readonly { afterMs: number; peakPercent: number | null }[]): Look[] {
  let atMs = 1_000_000;
  return given.map(({ afterMs, peakPercent }) => ({ atMs: (atMs += afterMs), peakPercent }));
}

function verdictsOf(looks: readonly Look[], terms: { minutes: number; gpu_below_percent: number }): Verdict[] {
  let known: Idleness | null = null;
  return looks.map((look) => {
    const { verdict, ...next } = afterLook(known, look, terms);
    known = next;
    return verdict;
  });
}

it('law: a pod is stopped at a look exactly if an unbroken row of idle looks up to it lasts as long as the rule says', () => {
  assert(
    property(rule, steps, (terms, given) => {
      const looks = looksOf(given);
      const isIdle = ({ peakPercent }: Look) => peakPercent !== null && peakPercent < terms.gpu_below_percent;
      const expected = looks.map((last, at) =>
        looks.slice(0, at + 1).some((first, from) => {
          const row = looks.slice(from, at + 1);
          const isUnbroken = row.every(
            (look, index) => index === 0 || look.atMs - (row[index - 1]?.atMs ?? 0) <= maxGapMs,
          );
          return row.every(isIdle) && isUnbroken && last.atMs - first.atMs >= terms.minutes * 60_000;
        }),
      );
      expect(verdictsOf(looks, terms).map((verdict) => verdict === 'stop')).toEqual(expected);
    }),
    runs(500),
  );
});

it('law: it is warned once before, in the last ten minutes, and anew after each use', () => {
  assert(
    property(rule, steps, (terms, given) => {
      const looks = looksOf(given);
      const verdicts = verdictsOf(looks, terms);
      let beganMs: number | null = null;
      let isWarned = false;
      looks.forEach((look, at) => {
        const isIdle = look.peakPercent !== null && look.peakPercent < terms.gpu_below_percent;
        const isContinued = beganMs !== null && look.atMs - (looks[at - 1]?.atMs ?? 0) <= maxGapMs;
        if (!isIdle || !isContinued) isWarned = false;
        beganMs = isIdle ? (isContinued ? beganMs : look.atMs) : null;
        const leftMs = beganMs === null ? Infinity : terms.minutes * 60_000 - (look.atMs - beganMs);
        const isDue = leftMs > 0 && leftMs <= warnMs && !isWarned;
        expect(verdicts[at] === 'warn').toBe(isDue);
        isWarned ||= isDue;
      });
    }),
    runs(500),
  );
});

it('a look without a figure stops nothing, however long it lasts', () => {
  const looks = looksOf(Array.from({ length: 100 }, () => ({ afterMs: 60_000, peakPercent: null })));
  expect(new Set(verdictsOf(looks, { minutes: 1, gpu_below_percent: 100 }))).toEqual(new Set(['goes on']));
});
