import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import { Account, openBank, type Bank } from './account-fixture.js';
import { callInHand, CopiedCall, handleOnce, type CallInHand } from './handle-once.js';
import { Transactions } from './transactions.js';

let bank: Bank;
let transactions: Transactions;
beforeAll(async () => {
  bank = await openBank();
  transactions = new Transactions(bank.dataSource);
});
afterAll(() => bank.close());
beforeEach(() => bank.dataSource.query('TRUNCATE account, call_nonce'));

interface Waiting {
  readonly name: string;
  readonly call: CallInHand | undefined;
  readonly answer: (name: string) => void;
  readonly refuse: (error: Error) => void;
}

/** Opens the accounts of calls that wait, in one transaction. */
async function openAll(waiting: readonly Waiting[], fails = false): Promise<void> {
  const calls = waiting.map(({ call }) => call);
  await transactions
    .runShared(calls, async (manager, isCopy) => {
      for (const [at, { name }] of waiting.entries()) if (!isCopy[at]) await manager.insert(Account, { name, balanceInCents: 1 });
      if (fails) throw new Error('It fails.');
      return isCopy;
    })
    .then(
      (isCopy) => waiting.forEach(({ name, answer, refuse }, at) => (isCopy[at] ? refuse(new CopiedCall()) : answer(name))),
      (error: Error) => waiting.forEach(({ refuse }) => refuse(error)),
    );
}

it('law: of calls that share transactions each has its effect once, whichever are copies and whichever transactions fail; a copy has no answer', async () => {
  const batch = fc.record({ numbers: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 6 }), fails: fc.boolean() });
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
        const expected = numbers.map((number, at) => {
          if (fails) return 'failed';
          return done.has(number) || numbers.indexOf(number) !== at ? undefined : `${number}`;
        });
        expect(await Promise.all(handled)).toEqual(expected);
        if (!fails) numbers.forEach((number) => done.add(number));
      }
      const names = (await bank.dataSource.getRepository(Account).find()).map(({ name }) => name);
      expect(names.toSorted()).toEqual([...done].map(String).toSorted());
    }),
    runs(60),
  );
});

it('a call that has committed an effect before is no copy in a transaction that it shares; one that came by no network needs no claim', async () => {
  const waiting: Waiting[] = [];
  const second = handleOnce({ nonce: randomBytes(32).toString('base64url'), deadlineAtMs: Date.now() + 5_000 }, async () => {
    await transactions.run((manager) => manager.insert(Account, { name: 'first', balanceInCents: 1 }));
    const call = callInHand();
    return new Promise<string>((answer, refuse) => waiting.push({ name: 'second', call, answer, refuse }));
  });
  const local = new Promise<string>((answer, refuse) => waiting.push({ name: 'local', call: callInHand(), answer, refuse }));
  while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  await openAll(waiting);
  expect(await Promise.all([second, local])).toEqual(['second', 'local']);
  expect(await bank.dataSource.getRepository(Account).count()).toBe(3);
  expect(await bank.dataSource.query('SELECT count(*)::int AS count FROM call_nonce')).toEqual([{ count: 1 }]);
});
