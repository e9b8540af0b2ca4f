import { expect, it } from '@jest/globals';
import { NoPasskeys, RefreshFailed } from '@atoll/session-tab';
import { asProblem } from './problem.js';

it.each([
  ['NotAllowedError', new DOMException('x', 'NotAllowedError'), 'no_passkey', /cancelled/],
  ['InvalidStateError', new DOMException('x', 'InvalidStateError'), 'no_passkey', /already/],
  ['NotSupportedError', new DOMException('x', 'NotSupportedError'), 'no_passkeys', /Try another/],
  ['SecurityError', new DOMException('x', 'SecurityError'), 'no_passkeys', /localhost/],
  ['NoPasskeys', new NoPasskeys(), 'no_passkeys', /https/],
  ['any other error', new Error('x'), 'console', /^x$/],
])('%s is told in words of the console', (_name, thrown, code, detail) => {
  const { status, ...problem } = asProblem(thrown);
  expect([status, problem.code]).toEqual([0, code]);
  expect(problem.detail).toMatch(detail);
});

it('a refresh that failed is what the platform said, or that it cannot be reached', () => {
  const response = new Response(null, { status: 503, headers: { 'retry-after': '7' } });
  const refused = new RefreshFailed({ response, body: { code: 'unavailable', detail: 'The service is not available.' } });
  expect(asProblem(refused)).toMatchObject({ status: 503, detail: 'The service is not available.', retryAfterSeconds: 7 });
  expect(asProblem(new RefreshFailed())).toMatchObject({ status: 0, code: 'offline' });
});
