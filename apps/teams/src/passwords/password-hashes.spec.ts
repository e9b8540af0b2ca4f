import { availableParallelism } from 'node:os';
import { expect, it } from '@jest/globals';
import { errorOf } from '@atoll/testing';
import { PasswordHashes } from './password-hashes.service.js';

const atOnce = Math.max(1, Math.floor(availableParallelism() / 2));

it('a password is hashed by Argon2id, with what OWASP recommends', async () => {
  expect(await new PasswordHashes().hash('a password')).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
});

it('more passwords than 64 that wait are refused at once with 503 and a time to come again', async () => {
  const hashes = new PasswordHashes();
  const flood = Array.from({ length: atOnce + 64 }, () => hashes.matches('a password', null));
  const { code, message, details } = await errorOf(hashes.hash('one more'));
  expect([code, message, details]).toEqual([
    'unavailable',
    'Too many people are logging in at the moment.',
    { retryAfterSeconds: 2 },
  ]);
  // Those that had no turn within two seconds are refused too.
  await Promise.allSettled(flood);
  expect(await hashes.matches('a password', await hashes.hash('a password'))).toBe(true);
});
