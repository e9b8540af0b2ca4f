import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { boundedText } from './bounded-text.js';

function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.from('more');
}

it('an answer is its text, up to the bound; a longer one is none, and is ended', async () => {
  const characters = ['a', Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)].map((part) =>
    Buffer.from(part),
  );
  expect(await boundedText(Readable.from(characters), 3)).toBe('aé');
  expect(await boundedText(null, 0)).toBe('');
  const body = Readable.from(endless());
  await expect(boundedText(body, 1_000)).rejects.toThrow(RangeError);
  expect(body.destroyed).toBe(true);
});
