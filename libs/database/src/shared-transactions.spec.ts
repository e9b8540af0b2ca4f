import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { AppError } from '@atoll/errors';
import { deadlocksOf, runs, untilLockWaits } from '@atoll/testing';
import { Account, openBank, type Bank } from './account-fixture.js';
import { callInHand, handleOnce, type CallInHand } from './handle-once.js';
import { Transactions } from './transactions.js';

let bank: Bank;
let transactions: Transactions;
beforeAll(async () => {
  bank = await openBank();
  transactions = new Transactions(bank.dataSource);
});
afterAll(() => bank.close());
beforeEach(() => bank.dataSource.query('TRUNCATE account, call_nonce, idempotency_key'));

interface Waiting {
  readonly name: string;
  readonly call: CallInHand | undefined;
  readonly deadlineAtMs?: number;
  readonly answer: (name: string) => void;
  readonly refuse: (error: Error) => void;
}

/** Opens the accounts of calls that wait, in one transaction. */
async function openAll(waiting: readonly Waiting[], fails = false): Promise<void> {
  await transactions
    .onceShared<{ name: string }>(waiting, async (manager, places) => {
      const names = places.map((at) => waiting[at]?.name ?? '');
      for (const name of names) await manager.insert(Account, { name, balanceInCents: 1 });
      if (fails) throw new Error('It fails.');
      return names.map((name) => ({ name }));
    })
    .then(
      (answers) =>
        answers.forEach((answer, at) =>
          answer instanceof Error ? waiting[at]?.refuse(answer) : waiting[at]?.answer(answer.name),
        ),
      (error: Error) => waiting.forEach(({ refuse }) => refuse(error)),
    );
}

it('law: of calls that share transactions each has its effect once, whichever are copies and whichever transactions fail; a copy has no answer', async () => {
  const batch = fc.record({
    numbers: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 6 }),
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 5 }), async (batches) => {
      await bank.dataSource.query('TRUNCATE account, call_nonce');
      const nonces = Array.from({ length: 6 }, () => randomBytes(32).toString('base64url'));
      const done = new Set<number>();
      for (const { numbers, fails } of batches) {
        const waiting: Waiting[] = [];
        const handled = numbers.map((number) =>
          handleOnce({ nonce: nonces[number] ?? '', deadlineAtMs: Date.now() + 5_000 }, async () => {
            const call = callInHand();
            return new Promise<string>((answer, refuse) => waiting.push({ name: `${number}`, call, answer, refuse }));
          }).catch(() => 'failed'),
        );
        await openAll(waiting, fails);
        // Where all are copies there is nothing to do that might fail.
        const hasFailed = fails && numbers.some((number) => !done.has(number));
        const expected = numbers.map((number, at) => {
          if (hasFailed) return 'failed';
          return done.has(number) || numbers.indexOf(number) !== at ? undefined : `${number}`;
        });
        expect(await Promise.all(handled)).toEqual(expected);
        if (!hasFailed) numbers.forEach((number) => done.add(number));
      }
      const names = (await bank.dataSource.getRepository(Account).find()).map(({ name }) => name);
      expect(names.toSorted()).toEqual([...done].map(String).toSorted());
    }),
    runs(60),
  );
});

it('a call that has committed an effect before is no copy in a transaction that it shares; one that came by no network needs no claim', async () => {
  const waiting: Waiting[] = [];
  const second = handleOnce(
    { nonce: randomBytes(32).toString('base64url'), deadlineAtMs: Date.now() + 5_000 },
    async () => {
      await transactions.run((manager) => manager.insert(Account, { name: 'first', balanceInCents: 1 }));
      const call = callInHand();
      return new Promise<string>((answer, refuse) => waiting.push({ name: 'second', call, answer, refuse }));
    },
  );
  const local = new Promise<string>((answer, refuse) =>
    waiting.push({ name: 'local', call: callInHand(), answer, refuse }),
  );
  while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  await openAll(waiting);
  expect(await Promise.all([second, local])).toEqual(['second', 'local']);
  expect(await bank.dataSource.getRepository(Account).count()).toBe(3);
  expect(await bank.dataSource.query('SELECT count(*)::int AS count FROM call_nonce')).toEqual([{ count: 1 }]);
});

it('does nothing for a call whose deadline passed while the transaction waited for a connection', async () => {
  const { master } = bank.dataSource.driver as unknown as { master: { options: { max: number } } };
  const takenAll = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  let taken = 0;
  const others = Array.from({ length: master.options.max }, () =>
    transactions.run(async () => {
      taken += 1;
      if (taken === master.options.max) takenAll.resolve();
      await release.promise;
    }),
  );
  await takenAll.promise;
  const waiting: Waiting[] = [];
  const handle = (name: string, deadlineAtMs: number) =>
    handleOnce({ nonce: randomBytes(32).toString('base64url'), deadlineAtMs }, () => {
      const call = callInHand();
      return new Promise<string>((answer, refuse) => waiting.push({ name, call, deadlineAtMs, answer, refuse }));
    });
  const nowMs = Date.now();
  const late = handle('late', nowMs + 5_000);
  const inTime = handle('in time', nowMs + 90_000);
  const opening = openAll(waiting);
  const clock = jest.spyOn(Date, 'now').mockReturnValue(nowMs + 60_000);
  release.resolve();
  await Promise.all(others);
  await expect(late).rejects.toMatchObject({ code: 'deadline_exceeded' });
  expect(await inTime).toBe('in time');
  await opening;
  clock.mockRestore();
  expect(await bank.dataSource.getRepository(Account).find()).toMatchObject([{ name: 'in time' }]);
  expect(await bank.dataSource.query('SELECT count(*)::int AS count FROM call_nonce')).toEqual([{ count: 1 }]);
});

it('batches with copies of the same calls, in whatever order, never end in a deadlock', async () => {
  const [first, second, third] = ['01', '02', '03'].map((nonce) => ({
    claim: { nonce: nonce.repeat(32), expiresAtS: Date.now() / 1000 + 60 },
    settle: () => undefined,
  }));
  const batch = (...calls: (CallInHand | undefined)[]) =>
    transactions.onceShared(
      calls.map((call) => ({ call })),
      (_manager, places) => Promise.resolve(places.map((place) => ({ place }))),
    );
  const blocker = bank.dataSource.createQueryRunner();
  await blocker.startTransaction();
  await blocker.query(`INSERT INTO call_nonce (nonce, expires_at) VALUES (decode($1, 'hex'), now())`, [
    second?.claim.nonce,
  ]);
  const deadlocks = await deadlocksOf(async () => {
    const both = Promise.all([batch(first, second, third), batch(third, second, first)]);
    // Both wait: for the second nonce, or for the batch that waits for it.
    await untilLockWaits(bank.dataSource, { text: 'call_nonce', count: 2 });
    await blocker.rollbackTransaction();
    const answers = (await both).flat();
    expect(answers.filter((answer) => answer instanceof Error)).toHaveLength(3);
  });
  await blocker.release();
  expect(deadlocks).toEqual([]);
});

interface Keyed {
  readonly key: number;
  readonly body: string;
  readonly isRefused: boolean;
}

const idempotencyOf = ({ key, body }: Keyed) => ({ key: `${key}`, scope: 'ada POST /account', fingerprint: body });
const codeOf = (answer: object) => (answer as { code?: string }).code;

it('law: of calls that share transactions under idempotency keys each key has its effect once, and its reply goes to the same body alone', async () => {
  const keyed = fc.record({ key: fc.nat({ max: 3 }), body: fc.constantFrom('a', 'b'), isRefused: fc.boolean() });
  const batch = fc.record({ calls: fc.array(keyed, { minLength: 1, maxLength: 6 }), fails: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 6 }), async (batches) => {
      await bank.dataSource.query('TRUNCATE account, idempotency_key');
      const kept = new Map<number, { body: string; name: string }>();
      let made = 0;
      for (const { calls, fails } of batches) {
        const running = new Set<number>();
        const begun: Keyed[] = [];
        const expected = calls.map((call) => {
          const before = kept.get(call.key);
          if (before) return before.body === call.body ? before.name : 'idempotency_mismatch';
          if (running.has(call.key)) return 'conflict';
          running.add(call.key);
          begun.push(call);
          return call.isRefused ? 'forbidden' : `account ${made + begun.length}`;
        });
        const work = transactions.onceShared<{ name: string }>(
          calls.map((call) => ({ call: undefined, idempotency: idempotencyOf(call) })),
          async (manager, places) => {
            const answers: ({ name: string } | AppError)[] = [];
            for (const [place, at] of places.entries()) {
              const name = `account ${made + place + 1}`;
              if (calls[at]?.isRefused) answers.push(new AppError('forbidden', 'no'));
              else {
                await manager.insert(Account, { name, balanceInCents: 1 });
                answers.push({ name });
              }
            }
            if (fails) throw new Error('It fails.');
            return answers;
          },
        );
        if (fails && begun.length > 0) {
          await expect(work).rejects.toThrow('It fails.');
          continue;
        }
        expect((await work).map((answer) => (answer instanceof Error ? codeOf(answer) : answer.name))).toEqual(
          expected,
        );
        calls.forEach(({ key, body }, at) => {
          const name = expected[at] ?? '';
          if (name.startsWith('account') && !kept.has(key)) kept.set(key, { body, name });
        });
        made += begun.length;
      }
      const names = (await bank.dataSource.getRepository(Account).find()).map(({ name }) => name);
      expect(names.toSorted()).toEqual([...kept.values()].map(({ name }) => name).toSorted());
    }),
    runs(60),
  );
});

it('a key whose call runs in another transaction is refused among calls that share one, and is answered afterwards; the others are done', async () => {
  const idempotency = idempotencyOf({ key: 1, body: 'a', isRefused: false });
  const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const context = {
    requestId: 'request',
    deadlineAtMs: Date.now() + 10_000,
    caller: { kind: 'system', service: 'spec' },
    idempotency,
  } as const;
  const first = transactions.once(context, async () => {
    begun.resolve();
    await end.promise;
    return { name: 'first' };
  });
  await begun.promise;
  const both = () =>
    transactions.onceShared([{ call: undefined, idempotency }, { call: undefined }], (_manager, places) =>
      Promise.resolve(places.map((at) => ({ name: `shared ${at}` }))),
    );
  const [refused, done] = await both();
  end.resolve();
  expect([codeOf(refused ?? {}), done]).toEqual(['conflict', { name: 'shared 1' }]);
  await first;
  expect(await both()).toEqual([{ name: 'first' }, { name: 'shared 1' }]);
});

it('where a call is left without an answer, nothing of the transaction is kept', async () => {
  const work = transactions.onceShared([{ call: undefined }, { call: undefined }], async (manager) => {
    await manager.insert(Account, { name: 'first', balanceInCents: 1 });
    return [{ name: 'first' }];
  });
  await expect(work).rejects.toThrow('A call was not answered.');
  expect(await bank.dataSource.getRepository(Account).count()).toBe(0);
});
