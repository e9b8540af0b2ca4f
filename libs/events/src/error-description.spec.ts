import { describe, expect, it } from '@jest/globals';
import { mustEnd } from '@atoll/testing';
import { describeError } from './error-description.js';

describe('the description of an error', () => {
  it('holds nothing that may be a value', () => {
    const error = new Error(`cannot use atl_abc at postgres://atoll:hunter2@db for "Ada" and 'Bob'`);
    expect(describeError(error)).toBe('Error: cannot use atl_… at postgres://…@db for "…" and "…"');
  });

  it('is made however long a word of the message is', () => {
    const word = 'a'.repeat(1_000_000);
    expect(mustEnd(() => describeError(new Error(`${word}://`)))).toBe(`Error: ${'a'.repeat(293)}…`);
  });
});
