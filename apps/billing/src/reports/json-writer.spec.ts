import { describe, expect, it } from '@jest/globals';
import {
  array,
  assert,
  asyncProperty,
  bigInt,
  constantFrom,
  integer,
  jsonValue,
  oneof,
  property,
  string,
} from 'fast-check';
import { decimalOf } from '../money/amounts.js';
import { runs } from '@atoll/testing';
import { Pace, Turns } from '@atoll/waiting';
import { JsonWriter } from './json-writer.js';

const written = (writer: JsonWriter) => Buffer.concat(writer.end().parts).toString('utf8');
/** As fast-check's unit `binary`, which first lists all code points, for 1.5 s. */
const codePoint = oneof(integer({ min: 0, max: 0xd7ff }), integer({ min: 0xe000, max: 0x10ffff })).map((point) =>
  String.fromCodePoint(point),
);
const text = oneof(
  string({ unit: codePoint }),
  string({ unit: 'grapheme' }),
  constantFrom('ö'.repeat(20_000), '🚀'.repeat(9_000), `x${'🚀'.repeat(9_000)}`),
  // The least and the greatest surrogates, where a piece would be cut.
  constantFrom(`x${'\u{10000}'.repeat(9_000)}`, `x${'\u{10ffff}'.repeat(9_000)}`),
);

describe('JSON written in parts', () => {
  it('is all that was written, in its order, whatever its length', () => {
    assert(
      property(array(text, { maxLength: 30 }), (texts) => {
        const writer = new JsonWriter();
        for (const piece of texts) {
          writer.text(piece);
          writer.bytes(Buffer.from(piece));
        }
        const whole = texts.map((piece) => piece + piece).join('');
        expect(writer.byteLength).toBe(Buffer.byteLength(whole));
        expect(written(writer) === Buffer.from(whole).toString('utf8')).toBe(true);
      }),
      runs(50),
    );
  });

  it('has decimals as they are shown everywhere', () => {
    const amount = oneof(
      constantFrom(0n, 1n, 999_999_999n, 1_000_000_000n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n),
      bigInt({ min: -(10n ** 12n), max: 10n ** 20n }),
      bigInt({ min: 0n, max: 10n ** 31n }),
      bigInt({ min: 0n, max: 10n ** 7n }).map((units) => units * 1_000_000_000n),
    );
    assert(
      property(array(amount, { minLength: 1, maxLength: 50 }), (amounts) => {
        const writer = new JsonWriter();
        for (const nano of amounts) {
          writer.decimal(nano);
          writer.text(' ');
        }
        expect(written(writer)).toBe(amounts.map((nano) => `${decimalOf(nano)} `).join(''));
      }),
      runs(500),
    );
  });

  it('has values and lists as JSON.stringify has them', async () => {
    await assert(
      asyncProperty(array(jsonValue(), { maxLength: 20 }), async (values) => {
        const writer = new JsonWriter();
        writer.startObject({ before: 1 });
        writer.text(',"values":');
        await writer.list(values, new Pace(new Turns()), (value) => writer.value(value));
        writer.text('}');
        expect(written(writer)).toBe(JSON.stringify({ before: 1, values }));
      }),
    );
  });

  it('is in parts of 256 KiB at most, and is not made beyond what goes over the wire', () => {
    const writer = new JsonWriter(3 * 1024 * 1024);
    const more = () => writer.text('x'.repeat(10_000));
    for (let n = 0; n < 300; n += 1) more();
    expect(() => {
      for (let n = 0; n < 100; n += 1) more();
    }).toThrow('interval must be longer, or the range shorter: this report would be larger than 3 MiB.');
    expect(writer.end().parts.every(({ length }) => length <= 256 * 1024)).toBe(true);
  });
});
