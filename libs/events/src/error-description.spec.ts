import { describe, expect, it } from '@jest/globals';
import { createApiKey } from '@atoll/api-keys';
import { mustEnd } from '@atoll/testing';
import { describeError } from './error-description.js';

describe('the description of an error', () => {
  it('holds nothing that may be a value', () => {
    const error = new Error(`cannot use ${createApiKey()} at postgres://atoll:hunter2@db for "Ada" and 'Bob'`);
    const said = 'cannot use atl_[redacted] at postgres://atoll:[redacted]@db for "…" and "…"';
    expect(describeError(error)).toBe(`Error: ${said}`);
  });

  it('is made however long a word of the message is', () => {
    const word = 'a'.repeat(1_000_000);
    expect(mustEnd(() => describeError(new Error(`${word}://`)))).toBe(`Error: ${'a'.repeat(293)}…`);
  });
});
