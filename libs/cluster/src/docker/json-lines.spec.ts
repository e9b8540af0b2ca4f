import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { jsonLines } from './json-lines.js';

const bodyOf = (chunks: Iterable<string | Uint8Array>) => Readable.from(chunks, { objectMode: false });

it('law: the values of a body are those of its lines, in whatever chunks they come', async () => {
  const values = fc.array(fc.jsonValue(), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(values, fc.integer({ min: 1, max: 40 }), fc.boolean(), async (given, size, isEnded) => {
      const text = given.map((value) => JSON.stringify(value)).join('\n\n') + (isEnded ? '\n' : '');
      const bytes = Buffer.from(text);
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      const read: unknown[] = [];
      for await (const value of jsonLines(bodyOf(chunks))) read.push(value);
      expect(read.map((value) => JSON.stringify(value))).toEqual(given.map((value) => JSON.stringify(value)));
    }),
    runs(50),
  );
});

it('a line without end is an error, and ends the body; lines before it are values', async () => {
  let sent = 0;
  function* endless(): Generator<string> {
    yield '{"id":1}\n"';
    // The end, where nothing else ends it.
    for (; sent < 4 * 1024 * 1024; sent += 16 * 1024) yield 'x'.repeat(16 * 1024);
    yield '"';
  }
  const body = bodyOf(endless());
  const read: unknown[] = [];
  const reading = async (): Promise<void> => {
    for await (const value of jsonLines(body)) read.push(value);
  };
  await expect(reading()).rejects.toThrow(RangeError);
  expect([read, body.destroyed]).toEqual([[{ id: 1 }], true]);
  expect(sent).toBeLessThan(2 * 1024 * 1024);
});
