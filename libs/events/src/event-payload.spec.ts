import { describe, expect, it } from '@jest/globals';
import { ListOf, Text, WholeNumber } from '@atoll/contracts';
import fc from 'fast-check';
import { InvalidPayload, readPayload, writePayload } from './event-payload.js';

class Line {
  @Text({ min: 0, max: 2_000_000 })
  text!: string;
}
class Letter {
  @WholeNumber({ min: 0, max: 10 })
  pages!: number;

  @ListOf(() => Line, { max: 10 })
  lines!: Line[];
}

describe('the payload of an event', () => {
  it('is read as an instance of its class, as it was written', () => {
    const text = fc
      .string({ unit: 'grapheme' })
      .filter((some) => !/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(some));
    const letter = fc.record(
      { pages: fc.integer({ min: 0, max: 10 }), lines: fc.array(fc.record({ text }), { maxLength: 10 }) },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(letter, (written) => {
        const read = readPayload(Letter, JSON.parse(writePayload(Letter, written)));
        expect(read).toBeInstanceOf(Letter);
        expect(read.lines.every((line) => line instanceof Line)).toBe(true);
        expect(JSON.parse(JSON.stringify(read))).toEqual(written);
      }),
    );
  });

  it('is refused when written with what its class does not allow, and the refusal names the field and no value', () => {
    const write = (payload: unknown) => () => writePayload(Letter, payload as Letter);
    expect(write({ pages: 11, lines: [] })).toThrow(new InvalidPayload('The payload is not a Letter: pages max.'));
    expect(write({ pages: 1, lines: [{ text: 1 }] })).toThrow('lines.0.text isString');
    expect(write({ pages: 1, lines: [], password: 'secret' })).toThrow(
      'The payload is not a Letter: password unknownField.',
    );
    expect(write([])).toThrow('The payload is not a Letter: isObject.');
    expect(write({ pages: 1n, lines: [] })).toThrow('no JSON');
    expect(write({ pages: 1, lines: [{ text: 'x'.repeat(1_000_000) }] })).toThrow('larger than 983040 bytes');
  });

  it('is refused when PostgreSQL could not store it; a backslash is no reason', () => {
    const write = (text: string) => () => writePayload(Letter, { pages: 1, lines: [{ text }] });
    expect(write('\u0000')).toThrow('U+0000');
    expect(write('\ud800')).toThrow('surrogate');
    expect(write('C:\\u0000 \\\\ud800 😀')).not.toThrow();
  });

  it('may hold more than the reader knows', () => {
    expect(readPayload(Letter, { pages: 1, lines: [], colour: 'red' })).toEqual({ pages: 1, lines: [] });
    for (const plain of [null, 1, 'text', [], { pages: 'many', lines: [] }])
      expect(() => readPayload(Letter, plain)).toThrow(InvalidPayload);
  });
});
