import { describe, expect, it } from '@jest/globals';
import { createMachine } from 'xstate';
import { defineMachine } from './definition.js';

const define = (states: object) => () =>
  defineMachine(createMachine({ id: 'sample', initial: 'first', states } as Parameters<typeof createMachine>[0]));
const transient = { deadlineMs: 1_000, givesUpBy: 'FAILED' };

describe('a definition is refused at boot', () => {
  it.each([
    [
      'a state that nothing reaches',
      { first: { type: 'final' }, island: { type: 'final' } },
      'nothing reaches "island"',
    ],
    ['a state that is left by nothing', { first: { on: { GO: 'end' } }, end: {} }, 'nothing leads out of "end"'],
    [
      'a transient state without a deadline',
      { first: { meta: { givesUpBy: 'FAILED' }, on: { FAILED: 'failed' } }, failed: { type: 'final' } },
      '"first" is transient and has no deadline',
    ],
    [
      'a transient state without a failed twin',
      { first: { meta: transient, on: { DONE: 'end' } }, end: { type: 'final' } },
      '"first" is transient and has no failed twin',
    ],
    [
      'a transient state that fails into itself',
      { first: { meta: transient, on: { FAILED: 'first', DONE: 'end' } }, end: { type: 'final' } },
      '"first" is transient and has no failed twin',
    ],
    [
      'a guard',
      { first: { on: { GO: { target: 'end', guard: () => true } } }, end: { type: 'final' } },
      '"first" has more than events with one target each',
    ],
    [
      'an action',
      { first: { entry: () => undefined, on: { GO: 'end' } }, end: { type: 'final' } },
      '"first" has more than events',
    ],
    [
      'nested states',
      { first: { initial: 'inner', states: { inner: {} }, on: { GO: 'end' } }, end: { type: 'final' } },
      '"first" has more than events',
    ],
  ])('with %s', (_, states, fault) => expect(define(states)).toThrow(fault));

  it('with all its faults named at once', () => {
    expect(define({ first: { meta: { deadlineMs: 0, givesUpBy: 'NONE' }, on: { GO: 'end' } }, end: {} })).toThrow(
      'The machine "sample" cannot be made durable: "first" is transient and has no deadline; "first" is transient and has no failed twin; nothing leads out of "end".',
    );
  });
});

it('says where an event leads, and nothing for one that changes nothing', () => {
  const definition = define({
    first: { meta: transient, on: { DONE: 'end', FAILED: 'failed' } },
    end: { type: 'final' },
    failed: { type: 'final' },
  })();
  expect(definition.initial).toBe('first');
  expect(definition.next('first', 'DONE')).toBe('end');
  expect(definition.next('end', 'DONE')).toBeUndefined();
  expect(definition.next('first', 'OTHER')).toBeUndefined();
});
