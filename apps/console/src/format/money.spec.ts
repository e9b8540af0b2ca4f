import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { billionths, decimalText, roundToAddUp, sum } from './money.js';

const amount = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }).map(decimalText);

describe('amounts', () => {
  it('law: text and billionths are the same amount', () => {
    fc.assert(fc.property(amount, (text) => expect(decimalText(billionths(text))).toBe(text)));
  });

  it('are read exactly', () => {
    expect(billionths('12.340000001')).toBe(12_340_000_001n);
    expect(billionths('-0.5')).toBe(-500_000_000n);
    expect(sum(['0.1', '0.2'])).toBe('0.3');
    expect(() => billionths('1e3')).toThrow('1e3 is not an amount');
  });

  it('law: what is shown in cents adds up to the total shown, and none is a cent or more from its exact value', () => {
    fc.assert(
      fc.property(fc.array(amount, { minLength: 1, maxLength: 40 }), (amounts) => {
        const shown = roundToAddUp(amounts, 2);
        const [total] = roundToAddUp([sum(amounts)], 2);
        expect(sum(shown)).toBe(total);
        for (const [at, text] of amounts.entries()) {
          const away = billionths(shown[at] ?? '') - billionths(text);
          expect(away > -10_000_000n && away < 10_000_000n).toBe(true);
        }
      }),
    );
  });
});
