import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { niceCeiling, stackBars } from './stacked-bars.js';

const values = fc.array(
  fc.integer({ min: -1e8, max: 1e8 }).map((cents) => cents / 100),
  { minLength: 3, maxLength: 3 },
);

/** The heights of the bars in a path. */
function heights(path: string): number[] {
  return [...path.matchAll(/v([\d.]+)/g)].map(([, height]) => Number(height));
}

describe('stacked bars', () => {
  it('law: bars are as high as their values, on one scale', () => {
    fc.assert(
      fc.property(fc.array(values, { minLength: 1, maxLength: 6 }), (series) => {
        const { paths, low, high } = stackBars(series, { width: 600, height: 200, fill: 0.7 });
        const scale = 200 / (high - low || 1);
        for (const [at, path] of paths.entries()) {
          const wanted = (series[at] ?? []).filter((value) => value !== 0).map((value) => Math.abs(value) * scale);
          const drawn = heights(path);
          expect(drawn).toHaveLength(wanted.length);
          for (const [bar, height] of drawn.entries()) expect(Math.abs(height - (wanted[bar] ?? 0))).toBeLessThan(0.01);
        }
      }),
    );
  });

  it('stacks credits below zero', () => {
    const { paths, low, high } = stackBars([[3], [-1]], { width: 100, height: 80, fill: 1 });
    expect({ low, high }).toEqual({ low: -1, high: 3 });
    expect(paths).toEqual(['M0 0h100v60h-100z', 'M0 60h100v20h-100z']);
  });

  it('draws nothing where there is nothing', () => {
    expect(stackBars([], { width: 100, height: 80, fill: 1 })).toEqual({ paths: [], low: -0, high: 0 });
    expect(niceCeiling(0)).toBe(0);
  });

  it('law: the scale ends at or above the greatest value, and not far above', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), (value) => {
        const ceiling = niceCeiling(value);
        expect(ceiling).toBeGreaterThanOrEqual(value * (1 - 1e-9));
        expect(ceiling).toBeLessThanOrEqual(value * 1.51);
      }),
    );
  });
});
