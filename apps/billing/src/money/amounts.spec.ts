import { describe, expect, it } from '@jest/globals';
import { assert, bigInt, property } from 'fast-check';
import { decimalOf, nanoDigitsOf, nanoOf, numberOf } from './amounts.js';

const anAmount = bigInt({ min: -(10n ** 40n), max: 10n ** 40n });

describe('decimal text', () => {
  it('is read to the last of its nine decimals', () => {
    expect(['0', '1.25', '0.000000001', '-3.5', '1000000000', '1.250000000'].map(nanoOf)).toEqual([
      0n,
      1_250_000_000n,
      1n,
      -3_500_000_000n,
      10n ** 18n,
      1_250_000_000n,
    ]);
  });

  it.each(['', '.', '1.', '.5', '1e3', '1,5', ' 1', '+1', '0.0000000001', 'NaN', '1.2.3'])('is not %p', (text) => {
    expect(() => nanoOf(text)).toThrow(RangeError);
  });

  it('is written as short as can be', () => {
    expect([0n, 1n, -1n, 12_340_000_000n, 10n ** 18n, 999_999_999n].map(decimalOf)).toEqual([
      '0',
      '0.000000001',
      '-0.000000001',
      '12.34',
      '1000000000',
      '0.999999999',
    ]);
  });

  it('says the amount it was written of, whatever it is', () => {
    assert(
      property(anAmount, (nano) => {
        expect(nanoOf(decimalOf(nano))).toBe(nano);
        if (nano >= 0n) expect(nanoDigitsOf(decimalOf(nano))).toBe(String(nano));
        expect(decimalOf(nano)).toMatch(/^(?:0|-?(?:0|[1-9]\d*)(?:\.\d{0,8}[1-9])?)$/);
      }),
    );
  });
});

describe('the JSON number of a quantity', () => {
  it('is the nearest there is', () => {
    assert(property(anAmount, (nano) => expect(numberOf(nano)).toBe(Number(decimalOf(nano)))));
  });
});
