import { expect, it } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { GroupCommit } from './group-commit.js';

interface Answer {
  answered: string;
}

const pause = () => new Promise((resolve) => setImmediate(resolve));
const settledAs = async (work: Promise<Answer>) =>
  work.then(
    ({ answered }) => answered,
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );

interface Asked {
  name: string;
  key: string;
  owner: string;
  topic?: string;
  isRefused: boolean;
  pauses: number;
}

const asked: fc.Arbitrary<Omit<Asked, 'name'>> = fc.record(
  {
    key: fc.constantFrom('a', 'b'),
    owner: fc.constantFrom('x', 'y', 'z'),
    topic: fc.constantFrom('p', 'q'),
    isRefused: fc.boolean(),
    pauses: fc.nat({ max: 3 }),
  },
  { requiredKeys: ['key', 'owner', 'isRefused', 'pauses'] },
);

it('law: each is answered once, by its own answer, in batches of one key within the limit that never overlap, in their order, and about one thing once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { maxLength: 30 }), fc.integer({ min: 1, max: 5 }), async (each, limit) => {
      const all = each.map((one, at): Asked => ({ ...one, name: `${at}` }));
      const done: Asked[] = [];
      const underWay = new Map<string, number>();
      const together = new GroupCommit<Asked, Answer>(limit, async (batch) => {
        expect([batch.length <= limit, new Set(batch.map(({ key }) => key)).size]).toEqual([true, 1]);
        expect(batch.map(({ name }) => Number(name))).toEqual(
          batch.map(({ name }) => Number(name)).toSorted((one, other) => one - other),
        );
        const topics = batch.flatMap(({ topic }) => topic ?? []);
        expect(new Set(topics).size).toBe(topics.length);
        const key = batch[0]!.key;
        expect(underWay.get(key) ?? 0).toBe(0);
        underWay.set(key, 1);
        await pause();
        done.push(...batch);
        underWay.set(key, 0);
        return batch.map(({ name, isRefused }) => (isRefused ? new AppError('conflict', name) : { answered: name }));
      });
      const answers: Promise<string>[] = [];
      for (const one of all) {
        answers.push(settledAs(together.add(one.key, one, one)));
        for (let count = 0; count < one.pauses; count += 1) await pause();
      }
      expect(await Promise.all(answers)).toEqual(all.map(({ name, isRefused }) => (isRefused ? 'conflict' : name)));
      // Those about the same, and those of one about nothing, one after the other.
      const rows = (from: readonly Asked[]) =>
        Map.groupBy(from, ({ key, owner, topic }) => `${key} ${topic ?? `of ${owner}`}`);
      expect(new Map([...rows(done)].toSorted())).toEqual(new Map([...rows(all)].toSorted()));
    }),
    runs(100),
  );
});

it('law: nobody waits for all that somebody else has asked for: while one waits, no other has more than one in the next batch beyond its own', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 6 }),
      async (who, limit) => {
        const waiting = new Map<string, number>();
        const count = (owner: string, more: number) => waiting.set(owner, (waiting.get(owner) ?? 0) + more);
        const open = Promise.withResolvers<void>();
        const together = new GroupCommit<string, Answer>(limit, async (batch) => {
          if (batch.includes('first')) await open.promise;
          else {
            const served = Map.groupBy(batch, (owner) => owner);
            const most = Math.max(...[...served.values()].map(({ length }) => length));
            for (const owner of batch) count(owner, -1);
            for (const [owner, left] of waiting)
              if (left > 0) expect(most).toBeLessThanOrEqual((served.get(owner)?.length ?? 0) + 1);
          }
          return batch.map((answered) => ({ answered }));
        });
        const answers = ['first', ...who].map((owner) => together.add('key', { owner }, owner));
        for (const owner of who) count(owner, 1);
        open.resolve();
        expect((await Promise.all(answers)).map(({ answered }) => answered)).toEqual(['first', ...who]);
      },
    ),
    runs(100),
  );
});

const origin = { owner: 'anybody' };

it.each([new Error('a bug'), new AppError('conflict', 'Refused.')])(
  'a request that makes the work fail fails alone: %s',
  async (error) => {
    const sizes: number[] = [];
    const together = new GroupCommit<string, Answer>(10, async (all) => {
      sizes.push(all.length);
      await pause();
      if (all.includes('poison')) throw error;
      return all.map((answered) => ({ answered }));
    });
    const answers = ['first', 'poison', 'third', 'fourth'].map((name) => settledAs(together.add('key', origin, name)));
    expect(await Promise.all(answers)).toEqual(['first', await settledAs(Promise.reject(error)), 'third', 'fourth']);
    expect(sizes).toEqual([1, 3, 1, 1, 1]);
  },
);

it('where the database is out of reach all of them are told so at once', async () => {
  let calls = 0;
  const together = new GroupCommit<string, Answer>(10, async () => {
    calls += 1;
    await pause();
    throw new AppError('unavailable', 'The database does not answer.');
  });
  const answers = ['first', 'second', 'third'].map((name) => settledAs(together.add('key', origin, name)));
  expect(await Promise.all(answers)).toEqual(['unavailable', 'unavailable', 'unavailable']);
  expect(calls).toBe(2);
});

it('no more wait than could be served, and the next is refused', async () => {
  let open: () => void = () => undefined;
  const together = new GroupCommit<number, Answer>(100, async (all) => {
    await new Promise<void>((resolve) => (open = resolve));
    return all.map((number) => ({ answered: String(number) }));
  });
  const answers = Array.from({ length: 2_002 }, (_, at) => settledAs(together.add('key', origin, at)));
  expect(await answers[2_001]).toBe('unavailable');
  let isOpen = true;
  void Promise.all(answers).then(() => (isOpen = false));
  while (isOpen) {
    open();
    await pause();
  }
  expect(await answers[2_000]).toBe('2000');
});
