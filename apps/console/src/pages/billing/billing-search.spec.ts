import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { validateBilling, validateComparison } from './billing-search.js';

describe('the address of the billing pages', () => {
  it('is read as it was written', () => {
    const search = { from: '2026-10-01', to: '2026-10-31', interval: 'daily', zone: 'local', by: 'pool' } as const;
    expect(validateBilling(search)).toEqual(search);
  });

  it.each([
    { from: '2026-02-30', to: '2026-03-01' },
    { from: '2026-03-02', to: '2026-03-01' },
    { from: '2026-03-02' },
    { interval: 'yearly' },
    { zone: 'Asia/Kathmandu' },
    { by: '<script>' },
  ])('leaves out what cannot be meant: %j', (search) => {
    expect(validateBilling(search)).toEqual({});
  });

  it('law: whatever stands in an address, what is read of it is valid and is read again the same', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('from', 'to', 'interval', 'zone', 'by', 'x'), fc.anything()),
        (search) => {
          const read = validateBilling(search);
          expect(validateBilling({ ...read })).toEqual(read);
        },
      ),
    );
  });

  it('names months that are', () => {
    expect(validateComparison({ first: '2026-13', second: '2026-10' })).toEqual({ second: '2026-10' });
  });
});
