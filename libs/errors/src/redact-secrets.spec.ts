import { expect, it } from '@jest/globals';
import { mustEnd } from '@atoll/testing';
import { redactSecrets } from './redact-secrets.js';

it.each([
  [`a key atl_${'a1'.repeat(19)}, and more`, 'a key atl_[redacted], and more'],
  ['postgres://atoll:hunter2@db/atoll', 'postgres://atoll:[redacted]@db/atoll'],
  ['nats://hunter2@one:4222,nats://hunter2@two', 'nats://[redacted]@one:4222,nats://[redacted]@two'],
  ['http://:hunter2@db', 'http://:[redacted]@db'],
])('of %j nothing secret stays', (text, redacted) => {
  expect(redactSecrets(text)).toBe(redacted);
});

it.each([
  '{"url":"http://127.0.0.1:3000","email":"ada@example.com"}',
  'https://db?of=ada@example.com https://db/ada@example.com https://db#ada@example.com https://db ada@example.com',
  'atl_ and what is no key: atl_short',
])('what is no secret stays: %j', (text) => {
  expect(redactSecrets(text)).toBe(text);
});

it.each(['a', ':', '@', 'a:', 'a://'])('a text of a million %j takes no longer than its length', (part) => {
  const text = part.repeat(1_000_000 / part.length);
  expect(mustEnd(() => redactSecrets(`${text}://`)).length).toBeGreaterThan(0);
});
