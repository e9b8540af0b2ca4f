import { expect, it } from '@jest/globals';
import { NoPasskeys, RefreshFailed } from '@atoll/session-tab';
import { asProblem, faultAt, Problem, takesNewLogIn } from './problem.js';

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

it('a fault of a part of a field is one of the field', () => {
  const problem = new Problem(400, 'invalid_input', '', null, { 'ports.1': 'must be a port', portable: 'no', name: 'too long' });
  expect(['ports', 'port', 'name', 'env'].map((path) => faultAt(problem, path))).toEqual([
    'must be a port',
    undefined,
    'too long',
    undefined,
  ]);
});

it.each([
  ['This takes a log-in of the last 10 minutes. Log in again.', true],
  ['This takes a log-in with your second factor. Log in again, with it.', true],
  ['A second factor is required where such a key reaches. Add one, or log in with it.', true],
  ['The role viewer may not do this.', false],
])('%s A new log-in helps: %s', (detail, helps) => {
  expect(takesNewLogIn(new Problem(403, 'forbidden', detail, null))).toBe(helps);
});
