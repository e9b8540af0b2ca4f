import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createApiKey, digestApiKey, isWellFormedApiKey, maskApiKey } from './api-key.js';

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.split('');

describe('an API key', () => {
  it('is atl_, 32 random and 6 checksum characters, and never the same twice', () => {
    const keys = new Set(Array.from({ length: 1000 }, createApiKey));
    expect(keys.size).toBe(1000);
    for (const key of keys) {
      expect(key).toMatch(/^atl_[0-9A-Za-z]{38}$/);
      expect(isWellFormedApiKey(key)).toBe(true);
    }
  });

  it('law: changing any one character breaks it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 41 }), fc.constantFrom(...base62), (position, character) => {
        const key = createApiKey();
        fc.pre(key[position] !== character);
        expect(isWellFormedApiKey(key.slice(0, position) + character + key.slice(position + 1))).toBe(false);
      }),
    );
  });

  it.each([
    '',
    'atl_',
    'ATL_' + 'a'.repeat(38),
    'atl_' + 'a'.repeat(37),
    'atl_' + 'é'.repeat(38),
    'x'.repeat(1_000_000),
  ])('is not a key: case %#', (text) => expect(isWellFormedApiKey(text)).toBe(false));

  it('is stored as a digest that depends on the pepper', () => {
    const key = createApiKey();
    expect(digestApiKey(key, 'one')).toMatch(/^[0-9a-f]{64}$/);
    expect(digestApiKey(key, 'one')).not.toBe(digestApiKey(key, 'two'));
  });

  it('is shown by its first eight and last four characters', () => {
    expect(maskApiKey('atl_ab12cdefghijklmnopqrstuvwxyz0123456789wxyz')).toBe('atl_ab12…wxyz');
  });
});
