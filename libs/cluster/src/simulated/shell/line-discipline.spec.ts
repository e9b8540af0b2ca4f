import { expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { LineDiscipline } from './line-discipline.js';
import { TypedInput } from './shell-input.js';

const never = new AbortController().signal;

/**
 * What a terminal makes of these chunks while nobody reads: its echo, the lines that wait, and how often it was
 * interrupted.
 */
async function typed(chunks: readonly string[]) {
  let [echo, interrupts] = ['', 0];
  const discipline = new LineDiscipline({ echo: (text) => (echo += text), interrupt: () => (interrupts += 1) });
  for (const chunk of chunks) discipline.type(chunk);
  discipline.end();
  const lines = [];
  for (let ends = 0; ends < 2 && lines.length < 10_000;) {
    const line = await discipline.next(never);
    if (line === null) ends += 1;
    lines.push(line);
  }
  return { echo, lines, interrupts };
}

const key = fc.constantFrom(
  'a',
  'é',
  '🚀',
  '1',
  ';',
  '[',
  'O',
  'A',
  '\r',
  '\u0003',
  '\u0004',
  '\b',
  '\u0015',
  '\u001b',
);

it('law: the same keys mean the same, in whatever chunks they come', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(key, { maxLength: 200 }), async (given) => {
      expect(await typed(given)).toEqual(await typed([given.join('')]));
    }),
  );
});

it('law: what waits for a reader is bounded, whatever is typed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(key, { minLength: 1, maxLength: 30 }), fc.nat(20_000), async (given, times) => {
      const { lines } = await typed([given.join('').repeat(times)]);
      const bytes = lines.reduce((sum, line) => sum + (line?.length ?? 0) + 1, 0);
      expect(bytes).toBeLessThanOrEqual(3 * 4_097);
    }),
    { numRuns: 30 },
  );
});

it('law: an escape sequence keeps at most 63 keys after its first, and what follows is typed', async () => {
  const inside = fc.array(fc.constantFrom(...'0123456789;?'), { minLength: 1, maxLength: 500 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('\u001b['), inside, async (begin, keys) => {
      const { echo, lines } = await typed([begin, ...keys, '\r']);
      // A break ends a sequence too, and is a break.
      const text = keys.slice(62).join('');
      expect([echo, lines[0]]).toEqual([`${text}\r\n`, text]);
    }),
  );
});

it('takes no effect from arrows, function keys and Alt', async () => {
  const { echo } = await typed(['a\u001b[A\u001b[1;5C\u001bOP\u001b[200~b\u001bx\u001b\u001b[Bc\r']);
  expect(echo).toBe('abc\r\n');
});

it('has room again for as much as its reader has taken', async () => {
  const discipline = new LineDiscipline({ echo: () => undefined, interrupt: () => undefined });
  discipline.type('\r'.repeat(10_000));
  for (let read = 0; read < 4_096; read++) expect(await discipline.next(never)).toBe('');
  discipline.type('here\r');
  expect(await discipline.next(never)).toBe('here');
});

it('gives other work a turn within one chunk, however many keys it holds', async () => {
  const source = new PassThrough();
  let [turns, isOver] = [0, false];
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const input = new TypedInput(
    source,
    () => Promise.resolve(),
    () => undefined,
  );
  source.end(Buffer.from(`${'x\u007f'.repeat(30_000)}end\r`));
  expect(await input.next(never)).toBe('end');
  isOver = true;
  expect(turns).toBeGreaterThan(50);
});
