import { expect, it } from '@jest/globals';
import { NoPasskeys, RefreshFailed } from '@atoll/session-tab';
import { asProblem, faultAt, isOfDeadLink, Problem, takesNewLogIn, waitOf } from './problem.js';

it.each([
  ['NotAllowedError', new DOMException('x', 'NotAllowedError'), 'no_passkey', /cancelled/],
  ['InvalidStateError', new DOMException('x', 'InvalidStateError'), 'no_passkey', /already/],
  ['NotSupportedError', new DOMException('x', 'NotSupportedError'), 'no_passkeys', /Try another/],
  ['SecurityError', new DOMException('x', 'SecurityError'), 'no_passkeys', /localhost/],
  ['NoPasskeys', new NoPasskeys(), 'no_passkeys', /https/],
  ['SyntaxError', new SyntaxError('Unexpected token <'), 'foreign', /log-in page/],
  ['any other error', new Error('x'), 'console', /^x$/],
])('%s is told in words of the console', (_name, thrown, code, detail) => {
  const { status, ...problem } = asProblem(thrown);
  expect([status, problem.code]).toEqual([0, code]);
  expect(problem.detail).toMatch(detail);
});

it('a refresh that failed is what the platform said, or that it cannot be reached', () => {
  const response = new Response(null, { status: 503, headers: { 'retry-after': '7' } });
  const refused = new RefreshFailed({
    response,
    body: { code: 'unavailable', detail: 'The service is not available.' },
  });
  expect(asProblem(refused)).toMatchObject({
    status: 503,
    detail: 'The service is not available.',
    retryAfterSeconds: 7,
  });
  const ofProxy = new RefreshFailed({ response: new Response('<html>'), body: undefined });
  expect(asProblem(ofProxy)).toMatchObject({ status: 0, code: 'foreign' });
  expect(asProblem(new RefreshFailed())).toMatchObject({ status: 0, code: 'offline' });
});

it('how long to wait is told in words', () => {
  const after = (seconds: number | null) => waitOf(new Problem(429, 'too_many_requests', '', null, {}, seconds));
  expect([null, 1, 42, 90, 91, 840].map(after)).toEqual([
    undefined,
    'Try again in 1 second.',
    'Try again in 42 seconds.',
    'Try again in 90 seconds.',
    'Try again in 2 minutes.',
    'Try again in 14 minutes.',
  ]);
});

it('a link that is good for nothing is told from a wrong password', () => {
  const refused = (detail: string) => isOfDeadLink(new Problem(401, 'unauthenticated', detail, null));
  expect(refused('The link cannot be used: it was already used, has expired or was replaced. Request another.')).toBe(
    true,
  );
  expect(refused('This address has an account already: the password must be the one it has.')).toBe(false);
});

it('a fault of a part of a field is one of the field', () => {
  const problem = new Problem(400, 'invalid_input', '', null, {
    'ports.1': 'must be a port',
    portable: 'no',
    name: 'too long',
  });
  expect(['ports', 'port', 'name', 'env'].map((path) => faultAt(problem, path))).toEqual([
    'must be a port',
    undefined,
    'too long',
    undefined,
  ]);
});

it.each([
  ['This needs a log-in within the last 10 minutes. Log in again.', true],
  ['This needs a log-in with your second factor. Log in again, with it.', true],
  [
    'A team whose pods this key would open requires a second factor. Set up a second factor, or log in with yours.',
    true,
  ],
  [
    'A team of yours, or the role of the operator, requires a second factor for a key that is not limited to a team. ' +
      'Set up a second factor, or log in with yours.',
    true,
  ],
  ['This team requires a second factor. Add one, or log in with it.', true],
  ['The role viewer may not do this.', false],
])('%s A new log-in helps: %s', (detail, helps) => {
  expect(takesNewLogIn(new Problem(403, 'forbidden', detail, null))).toBe(helps);
});
