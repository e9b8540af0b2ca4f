import { expect, it } from '@jest/globals';
import { digestApiKey } from './api-key.js';
import { fingerprintOfPepper } from './pepper-fingerprint.js';

it('the fingerprint of a pepper is that which databases store, differs for another pepper, and is no digest of a key', () => {
  const fingerprint = fingerprintOfPepper('a pepper for specs').toString('hex');
  expect(fingerprint).toBe('a191f206ca004581b714aa1a255fd63cf65cc64e605a8d9f1f2ae822ba04b2bc');
  expect(fingerprintOfPepper('a pepper for Specs').toString('hex')).not.toBe(fingerprint);
  expect(digestApiKey('atoll fingerprint of the pepper', 'a pepper for specs')).not.toBe(fingerprint);
});
