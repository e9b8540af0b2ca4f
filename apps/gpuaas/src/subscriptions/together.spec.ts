import { expect, it } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { Together } from './together.js';

interface Answer {
  answered: string;
}

const pause = () => new Promise((resolve) => setImmediate(resolve));
const settledAs = async (work: Promise<Answer>) =>
  work.then(
    ({ answered }) => answered,
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );

it('law: each is answered once, by its own answer, in the order of its key, in batches within the limit that never overlap', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.constantFrom('a', 'b'), isRefused: fc.boolean(), pauses: fc.nat({ max: 3 }) }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 5 }),
      async (asked, limit) => {
        const done: string[] = [];
        const underWay = new Map<string, number>();
        const together = new Together<{ name: string; key: string; isRefused: boolean }, Answer>(limit, async (all) => {
          expect([all.length <= limit, new Set(all.map(({ key }) => key)).size]).toEqual([true, 1]);
          const key = all[0]!.key;
          expect(underWay.get(key) ?? 0).toBe(0);
          underWay.set(key, 1);
          await pause();
          done.push(...all.map(({ name }) => name));
          underWay.set(key, 0);
          return all.map(({ name, isRefused }) => (isRefused ? new AppError('conflict', name) : { answered: name }));
        });
        const answers: Promise<string>[] = [];
        for (const [at, { key, isRefused, pauses }] of asked.entries()) {
          answers.push(settledAs(together.add(key, { name: `${key}${at}`, key, isRefused })));
          for (let count = 0; count < pauses; count += 1) await pause();
        }
        expect(await Promise.all(answers)).toEqual(asked.map(({ key, isRefused }, at) => (isRefused ? 'conflict' : `${key}${at}`)));
        for (const key of ['a', 'b']) {
          const names = asked.flatMap((each, at) => (each.key === key ? [`${key}${at}`] : []));
          expect(done.filter((name) => name.startsWith(key))).toEqual(names);
        }
      },
    ),
    runs(100),
  );
});

it('a request that makes the work fail fails alone', async () => {
  const sizes: number[] = [];
  const together = new Together<string, Answer>(10, async (all) => {
    sizes.push(all.length);
    await pause();
    if (all.includes('poison')) throw new Error('a bug');
    return all.map((answered) => ({ answered }));
  });
  const answers = ['first', 'poison', 'third', 'fourth'].map((name) => settledAs(together.add('key', name)));
  expect(await Promise.all(answers)).toEqual(['first', 'Error: a bug', 'third', 'fourth']);
  expect(sizes).toEqual([1, 3, 1, 1, 1]);
});

it('where the database is out of reach all of them are told so at once', async () => {
  let calls = 0;
  const together = new Together<string, Answer>(10, async () => {
    calls += 1;
    await pause();
    throw new AppError('unavailable', 'The database does not answer.');
  });
  const answers = ['first', 'second', 'third'].map((name) => settledAs(together.add('key', name)));
  expect(await Promise.all(answers)).toEqual(['unavailable', 'unavailable', 'unavailable']);
  expect(calls).toBe(2);
});

it('no more wait than could be served, and the next is refused', async () => {
  let open: () => void = () => undefined;
  const together = new Together<number, Answer>(100, async (all) => {
    await new Promise<void>((resolve) => (open = resolve));
    return all.map((number) => ({ answered: String(number) }));
  });
  const answers = Array.from({ length: 2_002 }, (_, at) => settledAs(together.add('key', at)));
  expect(await answers[2_001]).toBe('unavailable');
  let isOpen = true;
  void Promise.all(answers).then(() => (isOpen = false));
  while (isOpen) {
    open();
    await pause();
  }
  expect(await answers[2_000]).toBe('2000');
});
