import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { array, assert, asyncProperty, boolean, constantFrom, record } from 'fast-check';
import { AppError } from '@atoll/errors';
import { runs, statementsOf, untilLockWaits } from '@atoll/testing';
import type { DataSource } from 'typeorm';
import { Account, bankOptions, openBank, type Bank } from './account-fixture.js';
import { ExpiredNonces } from './expired-rows.js';
import { handleOnce, type SignedCall } from './handle-once.js';
import { openDataSource } from './open-data-source.js';
import { afterCommit, Transactions } from './transactions.js';

let bank: Bank;
let otherDataSource: DataSource;
/** Two replicas of one service: a pool each, one database. */
let one: Transactions;
let other: Transactions;

beforeAll(async () => {
  bank = await openBank();
  otherDataSource = await openDataSource(bankOptions(bank.database.url));
  one = new Transactions(bank.dataSource);
  other = new Transactions(otherDataSource);
});
afterAll(async () => {
  await otherDataSource.destroy();
  await bank.close();
});
beforeEach(() => bank.dataSource.query('TRUNCATE account, idempotency_key, call_nonce'));

const aCall = (deadlineMs = 5_000): SignedCall => ({
  nonce: randomBytes(32).toString('base64url'),
  deadlineAtMs: Date.now() + deadlineMs,
});
let accountNo = 0;
const open = (transactions: Transactions, name = `account ${(accountNo += 1)}`) =>
  transactions.run(async (manager) => {
    await manager.insert(Account, { name, balanceInCents: 1 });
    return name;
  });
const accounts = () => bank.dataSource.getRepository(Account).count();
const nonces = async () =>
  (await bank.dataSource.query<{ count: number }[]>('SELECT count(*)::int AS count FROM call_nonce'))[0]?.count;

/** Something that others wait for. */
function gate(): { open: () => void; opened: Promise<void> } {
  let release: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (release = resolve));
  return { open: () => release(), opened };
}

describe('a call of which copies reach two replicas', () => {
  it('is done once, and the copy has no answer', async () => {
    const call = aCall();
    expect(await handleOnce(call, () => open(one, 'first'))).toBe('first');
    expect(await handleOnce(call, () => open(other, 'copy'))).toBeUndefined();
    expect(await accounts()).toBe(1);
  });

  it('is done once by whoever commits first, while the other waits for the outcome', async () => {
    const call = aCall();
    const [begun, finish] = [gate(), gate()];
    const first = handleOnce(call, () =>
      one.run(async (manager) => {
        await manager.insert(Account, { name: 'first', balanceInCents: 1 });
        begun.open();
        await finish.opened;
        return 'first';
      }),
    );
    await begun.opened;
    let copyRan = false;
    const copy = handleOnce(call, () => other.run(async () => (copyRan = true)));
    await untilLockWaits(bank.dataSource, { text: 'call_nonce' });
    finish.open();
    expect([await first, await copy, copyRan]).toEqual(['first', undefined, false]);
    expect(await accounts()).toBe(1);
  });

  it('is done by the copy where the first failed, since it had no effect', async () => {
    const call = aCall();
    const refusal = new AppError('conflict', 'No.');
    await expect(handleOnce(call, () => one.run(() => Promise.reject(refusal)))).rejects.toBe(refusal);
    expect(await nonces()).toBe(0);
    expect(await handleOnce(call, () => open(other, 'copy'))).toBe('copy');
    expect(await handleOnce(call, () => open(one, 'again'))).toBeUndefined();
    expect(await accounts()).toBe(1);
  });

  it('is dropped as a copy before its Idempotency-Key is asked for', async () => {
    const idempotency = { key: 'key', scope: 'scope', fingerprint: 'body' };
    const context = {
      requestId: 'r',
      deadlineAtMs: 0,
      caller: { kind: 'system', service: 'spec' },
      idempotency,
    } as const;
    const once = (transactions: Transactions) => transactions.once(context, async () => ({ done: true }));
    const call = aCall();
    expect(await handleOnce(call, () => once(one))).toEqual({ done: true });
    expect(await handleOnce(call, () => once(other))).toBeUndefined();
    expect(await handleOnce(aCall(), () => once(other))).toEqual({ done: true });
  });

  it('changes nothing as a copy, also where the handler swallows what it was told and goes on', async () => {
    const call = aCall();
    await handleOnce(call, () => open(one));
    const stubborn = async () => {
      await open(other).catch(() => undefined);
      await open(other).catch(() => undefined);
      return 'done';
    };
    expect(await handleOnce(call, stubborn)).toBeUndefined();
    expect(await accounts()).toBe(1);
  });

  it('law: whatever its transactions are, and whichever fail or are retried, the effects are those of one handling', async () => {
    const step = record({
      kind: constantFrom('commits', 'fails', 'is retried'),
      nested: boolean(),
      parallel: boolean(),
    });
    const replicas = array(constantFrom(0, 1), { minLength: 2, maxLength: 4 });
    await assert(
      asyncProperty(replicas, array(step, { maxLength: 4 }), async (chosen, steps) => {
        await bank.dataSource.query('TRUNCATE account, call_nonce');
        const call = aCall();
        const outcomes = await Promise.all(
          chosen.map((replica, handling) =>
            handleOnce(call, () => handle([one, other][replica] ?? one, handling, steps)),
          ),
        );
        const names = (await bank.dataSource.getRepository(Account).find()).map(({ name }) => name);
        const winner = outcomes.findIndex((outcome) => outcome !== undefined);
        if (!steps.some(({ kind }) => kind !== 'fails')) {
          // Nothing has committed, so nothing tells one handling from the other.
          expect([names, outcomes]).toEqual([[], chosen.map(() => true)]);
          return;
        }
        expect(outcomes.filter((outcome) => outcome !== undefined)).toHaveLength(1);
        const effects = steps.flatMap(({ kind, nested }, index) => {
          if (kind === 'fails') return [];
          return nested ? [`${winner} ${index}`, `${winner} ${index} nested`] : [`${winner} ${index}`];
        });
        expect(names.toSorted()).toEqual(effects.toSorted());
      }),
      runs(100),
    );
  });
});

interface Step {
  kind: 'commits' | 'fails' | 'is retried';
  /** Has a transaction within, once it is certain to commit. */
  nested: boolean;
  /** Begins beside the step before it. */
  parallel: boolean;
}

/** A handler of as many transactions, of which each leaves an account that names the handling and the step. */
async function handle(transactions: Transactions, handling: number, steps: readonly Step[]): Promise<true> {
  let before: Promise<unknown> = Promise.resolve();
  const all = steps.map(({ kind, nested, parallel }, index) => {
    let attempts = 0;
    const work = () =>
      transactions.run(async (manager) => {
        attempts += 1;
        await manager.insert(Account, { name: `${handling} ${index}`, balanceInCents: 1 });
        if (kind === 'fails') throw new AppError('conflict', 'No.');
        if (kind === 'is retried' && attempts === 1)
          await manager.query(`DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$`);
        if (nested)
          await transactions.run((inner) =>
            inner.insert(Account, { name: `${handling} ${index} nested`, balanceInCents: 1 }),
          );
      });
    const begun = (parallel ? Promise.resolve() : before).then(work).catch((error: unknown) => {
      if (kind !== 'fails') throw error;
    });
    before = Promise.all([before, begun]);
    // Its rejection is that of a step, which is looked at below.
    before.catch(() => undefined);
    return begun;
  });
  const failed = (await Promise.allSettled(all)).find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  return true;
}

describe('a call in a process that is frozen until after its deadline', () => {
  afterEach(() => void jest.restoreAllMocks());
  const freezeUntil = (nowMs: number) => jest.spyOn(Date, 'now').mockReturnValue(nowMs);

  it('changes nothing where it has changed nothing before', async () => {
    const call = aCall();
    const frozen = async () => {
      await bank.dataSource.query('SELECT 1');
      freezeUntil(call.deadlineAtMs);
      return open(one);
    };
    await expect(handleOnce(call, frozen)).rejects.toMatchObject({ code: 'deadline_exceeded' });
    expect([await accounts(), await nonces()]).toEqual([0, 0]);
  });

  it('changes nothing either where it has waited for a connection all the time', async () => {
    const call = aCall();
    const { master } = bank.dataSource.driver as unknown as { master: { options: { max: number } } };
    const [taken, release] = [gate(), gate()];
    let begun = 0;
    const others = Array.from({ length: master.options.max }, () =>
      one.run(async () => {
        if ((begun += 1) === master.options.max) taken.open();
        await release.opened;
      }),
    );
    await taken.opened;
    const waiting = handleOnce(call, () => open(one));
    freezeUntil(call.deadlineAtMs);
    release.open();
    await expect(waiting).rejects.toMatchObject({ code: 'deadline_exceeded' });
    await Promise.all(others);
    expect(await accounts()).toBe(0);
  });

  it('ends what it has begun before', async () => {
    const call = aCall();
    const frozen = async () => {
      await open(one);
      freezeUntil(call.deadlineAtMs);
      return open(one);
    };
    expect(await handleOnce(call, frozen)).toEqual(expect.any(String));
    expect([await accounts(), await nonces()]).toEqual([2, 1]);
  });
});

describe('the transactions of one call', () => {
  it('may be several, one after the other, of which the first remembers the call', async () => {
    const call = aCall();
    const several = async (transactions: Transactions) => {
      for (const _ of [1, 2, 3]) await open(transactions);
      return 'done';
    };
    expect(await handleOnce(call, () => several(one))).toBe('done');
    expect(await handleOnce(call, () => several(other))).toBeUndefined();
    expect([await accounts(), await nonces()]).toEqual([3, 1]);
  });

  it('may be open at the same time, and one within the other', async () => {
    const call = aCall();
    const parallel = async (transactions: Transactions) => {
      await Promise.all([open(transactions), open(transactions)]);
      await transactions.run(async () => open(transactions));
      return transactions.run(async (manager) => {
        await manager.query('SELECT 1');
        return open(transactions);
      });
    };
    expect(await handleOnce(call, () => parallel(one))).toEqual(expect.any(String));
    expect(await handleOnce(call, () => parallel(other))).toBeUndefined();
    const nestedFirst = aCall();
    expect(await handleOnce(nestedFirst, () => one.run(() => open(one)))).toEqual(expect.any(String));
    expect(await handleOnce(nestedFirst, () => open(other))).toBeUndefined();
    expect([await accounts(), await nonces()]).toEqual([5, 2]);
  });

  it('remember the call though the first of them is rolled back', async () => {
    const call = aCall();
    const handle = async (transactions: Transactions) => {
      await transactions.run(() => Promise.reject(new AppError('conflict', 'No.'))).catch(() => undefined);
      return open(transactions);
    };
    expect(await handleOnce(call, () => handle(one))).toEqual(expect.any(String));
    expect(await handleOnce(call, () => handle(other))).toBeUndefined();
    expect([await accounts(), await nonces()]).toEqual([1, 1]);
  });

  it('remember the call though they are retried after a serialization failure', async () => {
    const call = aCall();
    let runs = 0;
    const work = one.run.bind(one, async (manager) => {
      await manager.insert(Account, { name: 'retried', balanceInCents: 1 });
      runs += 1;
      if (runs < 3) await manager.query(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`);
      return 'done';
    });
    expect(await handleOnce(call, work)).toBe('done');
    expect(await handleOnce(call, () => open(other))).toBeUndefined();
    expect([runs, await accounts(), await nonces()]).toEqual([3, 1, 1]);
  });

  it('take nothing back for what a hook throws after the commit', async () => {
    const call = aCall();
    const hooked = one.run.bind(one, async (manager) => {
      afterCommit(manager, () => {
        throw new Error('a hook that should not');
      });
      return 'done';
    });
    const handle = async () => {
      await hooked().catch(() => undefined);
      return open(one);
    };
    expect(await handleOnce(call, handle)).toEqual(expect.any(String));
    expect(await accounts()).toBe(1);
  });

  it('belong to no call outside of one, nor when it has ended', async () => {
    await open(one);
    const [ended, finished] = [gate(), gate()];
    await handleOnce(aCall(), async () => {
      void ended.opened.then(() => open(one)).then(finished.open);
      return 'done';
    });
    ended.open();
    await finished.opened;
    expect([await accounts(), await nonces()]).toEqual([2, 0]);
  });
});

describe('what is remembered of a call', () => {
  it('costs one statement in the first transaction that writes, sent with its start, and none where nothing is written', async () => {
    const textsOf = async (handle: () => Promise<unknown>) =>
      (await statementsOf(() => handleOnce(aCall(), handle))).map(({ text }) => text);
    expect(await textsOf(() => bank.dataSource.query('SELECT 1'))).toEqual(['SELECT 1']);
    const twoTransactions = async () => {
      await one.run((manager) => manager.query('SELECT 2'));
      await one.run((manager) => manager.query('SELECT 3'));
    };
    expect(await textsOf(twoTransactions)).toEqual([
      expect.stringMatching(
        /^START TRANSACTION; INSERT INTO "bank"."call_nonce" [^;]*ON CONFLICT \(nonce\) DO NOTHING$/,
      ),
      'SELECT 2',
      'COMMIT',
      'START TRANSACTION',
      'SELECT 3',
      'COMMIT',
    ]);
  });

  it('is kept until a minute after its deadline, and removed then', async () => {
    const expired = new ExpiredNonces(bank.dataSource);
    for (const deadlineMs of [5_000, Number.MAX_SAFE_INTEGER]) await handleOnce(aCall(deadlineMs), () => open(one));
    const pass = (seconds: number) =>
      bank.dataSource.query('UPDATE call_nonce SET expires_at = expires_at - make_interval(secs => $1)', [seconds]);
    await pass(35);
    await expired.removeSome();
    expect(await nonces()).toBe(2);
    await pass(31);
    await expired.removeSome();
    expect(await nonces()).toBe(1);
  });

  it('leaves no trace on a connection whose transaction could not begin', async () => {
    const call = aCall();
    await bank.dataSource.query('ALTER TABLE call_nonce RENAME TO elsewhere');
    await expect(handleOnce(call, () => open(one))).rejects.toThrow('call_nonce');
    await bank.dataSource.query('ALTER TABLE elsewhere RENAME TO call_nonce');
    await open(one);
    expect(await nonces()).toBe(0);
    expect(await handleOnce(call, () => open(one, 'first'))).toBe('first');
  });
});
