import { expect, it } from '@jest/globals';
import { NoPasskeys } from '@atoll/session-tab';
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
