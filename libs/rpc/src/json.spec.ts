import { describe, expect, it } from '@jest/globals';
import { contract, operation } from '@atoll/contracts';
import type { Handlers } from './handle.js';
import { byteLengthOf, Json, textOf } from './json.js';
import { encodeAnswer } from './wire.js';

class Range {
  start!: string;
}
class Bill {
  total!: string;
}
class Other {
  days!: number[];
}
const _bills = contract('billing', { get: operation(Range, Bill) });
/** Cut anywhere, also within a character. */
const inParts = (text: string, bytes: number) => {
  const whole = Buffer.from(text);
  return Array.from({ length: Math.ceil(whole.length / bytes) }, (_, n) => whole.subarray(n * bytes, (n + 1) * bytes));
};

describe('JSON that is written already', () => {
  it('goes over the wire in its parts, as it is', () => {
    const parts = inParts('{"total":"2.50"}', 5);
    expect(encodeAnswer(new Json<Bill>(parts))).toBe(parts);
    expect(encodeAnswer({ total: '1' })).toBe('{"total":"1"}');
  });

  it('is one text again where it is read, and as long as its parts', () => {
    const parts = inParts('{"name":"größer 🚀"}', 3);
    expect(textOf(parts)).toBe('{"name":"größer 🚀"}');
    expect([byteLengthOf(parts), byteLengthOf('größer 🚀')]).toEqual([24, 13]);
  });
});

// What follows does not run: `tsc` refuses a `@ts-expect-error` above a line that compiles.

class _WrittenBill implements Handlers<typeof _bills> {
  get(): Promise<Json<Bill>> {
    return Promise.resolve(new Json<Bill>([]));
  }
}

class _WrittenOther implements Handlers<typeof _bills> {
  // @ts-expect-error -- JSON of another class
  get(): Promise<Json<Other>> {
    return Promise.resolve(new Json<Other>([]));
  }
}
