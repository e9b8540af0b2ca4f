import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Account, openBank, type Bank } from './account-fixture.js';
import { unique } from './database-errors.js';
import { afterCommit, Transactions } from './transactions.js';

let bank: Bank;
let transactions: Transactions;

beforeAll(async () => {
  bank = await openBank();
  transactions = new Transactions(bank.dataSource);
});
afterAll(() => bank.close());
beforeEach(() => bank.dataSource.getRepository(Account).deleteAll());

const balances = async () =>
  Object.fromEntries(
    (await bank.dataSource.getRepository(Account).find()).map(({ name, balanceInCents }) => [name, balanceInCents]),
  );

describe('Transactions.run', () => {
  it('commits what the work did and gives back what it gave', async () => {
    const result = await transactions.run(async (manager) => {
      await manager.insert(Account, { name: 'ada', balanceInCents: 5 });
      return 'done';
    });
    expect(result).toBe('done');
    expect(await balances()).toEqual({ ada: 5 });
  });

  it('keeps nothing of work that throws, and throws the same', async () => {
    const failure = new Error('changed my mind');
    const work = transactions.run(async (manager) => {
      await manager.insert(Account, { name: 'ada', balanceInCents: 5 });
      throw failure;
    });
    await expect(work).rejects.toBe(failure);
    expect(await balances()).toEqual({});
  });

  it('lets a feature say that a row is not unique, and of nothing else that fails', async () => {
    const work = (sql: string) =>
      transactions.run((manager) => unique(manager.query(sql), 'There is an account of that name.'));
    const insert = `INSERT INTO account (name, balance_in_cents) VALUES ('ada', 1)`;
    await work(insert);
    await expect(work(insert)).rejects.toMatchObject({
      code: 'conflict',
      message: 'There is an account of that name.',
    });
    await expect(work('SELECT 1/0')).rejects.toThrow('division by zero');
  });

  it('does not report success when a failed statement was swallowed, because then nothing was committed', async () => {
    const work = transactions.run(async (manager) => {
      await manager.insert(Account, { name: 'ada', balanceInCents: 1 });
      await manager.query('SELECT 1/0').catch(() => undefined);
    });
    await expect(work).rejects.toThrow('Nothing was committed');
    expect(await balances()).toEqual({});
  });

  it('runs all of it again after a serialization failure', async () => {
    await bank.dataSource.getRepository(Account).insert({ name: 'ada', balanceInCents: 0 });
    const addOne = (barrier: () => Promise<void>) =>
      transactions.run(async (manager) => {
        await manager.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ');
        const { balanceInCents } = await manager.findOneByOrFail(Account, { name: 'ada' });
        await barrier();
        await manager.update(Account, { name: 'ada' }, { balanceInCents: balanceInCents + 1 });
      });
    let arrived = 0;
    let open: () => void = () => undefined;
    const both = new Promise<void>((resolve) => (open = resolve));
    const barrier = () => {
      arrived += 1;
      if (arrived === 2) open();
      return both;
    };
    await Promise.all([addOne(barrier), addOne(barrier)]);
    expect(await balances()).toEqual({ ada: 2 });
    expect(arrived).toBe(3);
  });

  it('runs all of it again after a deadlock', async () => {
    await bank.dataSource.getRepository(Account).insert([
      { name: 'ada', balanceInCents: 0 },
      { name: 'bob', balanceInCents: 0 },
    ]);
    let runs = 0;
    const crossing = async (first: string, second: string) => {
      await transactions.run(async (manager) => {
        runs += 1;
        await manager.increment(Account, { name: first }, 'balanceInCents', 1);
        // Until the other holds its first row as well, so that they cross; afterwards it is too late for that.
        if (runs <= 2) await bothHold();
        await manager.increment(Account, { name: second }, 'balanceInCents', 1);
      });
    };
    let holding = 0;
    let go: () => void = () => undefined;
    const crossed = new Promise<void>((resolve) => (go = resolve));
    const bothHold = () => {
      holding += 1;
      if (holding === 2) go();
      return crossed;
    };
    await Promise.all([crossing('ada', 'bob'), crossing('bob', 'ada')]);
    expect(await balances()).toEqual({ ada: 2, bob: 2 });
    expect(runs).toBeGreaterThanOrEqual(3);
  });

  it('gives up as unavailable when the conflict does not end', async () => {
    let runs = 0;
    const work = transactions.run(async (manager) => {
      runs += 1;
      await manager.query(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`);
    });
    await expect(work).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterSeconds: 1 } });
    expect(runs).toBe(5);
  });
});

describe('afterCommit', () => {
  it('calls each hook once after the commit, however often it was registered', async () => {
    const calls: string[] = [];
    const hook = () => calls.push('hook');
    await transactions.run(async (manager) => {
      for (let times = 0; times < 3; times += 1) afterCommit(manager, hook);
      afterCommit(manager, () => calls.push('other'));
      await manager.insert(Account, { name: 'ada', balanceInCents: 5 });
      calls.push('work');
    });
    expect(calls).toEqual(['work', 'hook', 'other']);
  });

  it('calls nothing where nothing was committed', async () => {
    let calls = 0;
    const work = transactions.run((manager) => {
      afterCommit(manager, () => (calls += 1));
      return Promise.reject(new Error('changed my mind'));
    });
    await expect(work).rejects.toThrow('changed my mind');
    expect(calls).toBe(0);
    expect(() => afterCommit(bank.dataSource.manager, () => undefined)).toThrow(
      'afterCommit must be called inside a transaction.',
    );
  });
});
