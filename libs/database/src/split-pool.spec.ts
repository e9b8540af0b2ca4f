import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import pg from 'pg';
import { openBank, type Bank } from './account-fixture.js';
import type { DatabaseOptions } from './data-source.js';
import { isOutage } from './database-errors.js';
import { QueueTime } from './queue-time.js';
import { inBackground, queuedMs, SplitPool } from './split-pool.js';
import { Statements } from './statements.js';
import { Transactions } from './transactions.js';

let bank: Bank;
beforeEach(async () => {
  bank = await open({ poolSize: 1, backgroundPoolSize: 1 });
});
afterEach(() => bank.close());

const open = (options: Partial<DatabaseOptions>) =>
  openBank({ timeouts: { acquireMs: 100 * timeoutFactor }, ...options });
const one = () => new Statements(bank.dataSource).query<{ one: number }>('SELECT 1 AS one', []);
const found = [{ one: 1 }];

/** Takes a connection by a transaction, and keeps it until it is told to let go. */
async function hold(): Promise<() => Promise<void>> {
  let letGo = (): void => undefined;
  const released = new Promise<void>((resolve) => (letGo = resolve));
  let held: Promise<void> = Promise.resolve();
  await new Promise<void>((begun) => {
    held = new Transactions(bank.dataSource).run(async (manager) => {
      await manager.query('SET LOCAL idle_in_transaction_session_timeout = 0');
      begun();
      await released;
    });
  });
  return async () => {
    letGo();
    await held;
  };
}

describe('background work', () => {
  it('that holds all of its connections keeps none from requests', async () => {
    const letGo = await inBackground(hold);
    expect(await one()).toEqual(found);
    await letGo();
  });

  it('gets its connection while requests hold all of theirs', async () => {
    const letGo = await hold();
    expect(await inBackground(one)).toEqual(found);
    expect(await inBackground(() => bank.dataSource.query('SELECT 1 AS one'))).toEqual(found);
    await expect(one()).rejects.toMatchObject({ code: 'unavailable' });
    await letGo();
  });

  it('waits for one another of its connections, longer than a request would', async () => {
    const letGo = await inBackground(hold);
    const second = inBackground(one);
    // Longer than a request waits: the second look of requests has been refused by then.
    const others = await hold();
    await expect(one()).rejects.toMatchObject({ code: 'unavailable' });
    await others();
    await letGo();
    expect(await second).toEqual(found);
  });

  it('can read how long it has waited for connections', async () => {
    const letGo = await inBackground(hold);
    const waited = inBackground(async () => [queuedMs(), await one(), queuedMs()]);
    await letGo();
    expect(await waited).toEqual([0, found, expect.any(Number)]);
    expect((await waited)[2]).toBeGreaterThan(0);
    expect(queuedMs()).toBe(0);
  });

  it('of one owner waits for one connection of each other owner, and not for all that wait before it', async () => {
    const letGo = await inBackground(hold);
    const order: string[] = [];
    const lookOf = (owner: string) => inBackground(one, new QueueTime(owner)).then(() => order.push(owner));
    const all = ['hall', 'hall', 'hall', 'hall', 'hall', 'hall', 'node', 'node', 'team'].map(lookOf);
    await letGo();
    await Promise.all(all);
    // Two were next before others came: one that was told so, and one in the line of the pool.
    expect(order.indexOf('team')).toBeLessThan(4);
    expect(order.lastIndexOf('node')).toBeLessThan(6);
    expect(order.slice(-2)).toEqual(['hall', 'hall']);
  });

  it('of which more waits than is served for long is refused, and what waits behind it is served', async () => {
    await bank.close();
    bank = await open({ poolSize: 1, backgroundPoolSize: 1, timeouts: { acquireMs: 10_000 } });
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    const letGo = await inBackground(hold);
    const all = Promise.allSettled([1, 2, 3, 4].map(() => inBackground(one, new QueueTime('hall'))));
    jest.advanceTimersByTime(10_001);
    jest.useRealTimers();
    const after = inBackground(one, new QueueTime('hall'));
    await letGo();
    // Also the one that has the place of the first in the line of the pool by now: it has waited for as long.
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
    expect(await after).toEqual(found);
  });

  it('stays background work in all that it awaits and starts', async () => {
    const letGo = await hold();
    const started = await inBackground(async () => {
      await Promise.resolve();
      return { answer: new Promise((resolve) => setImmediate(resolve)).then(one) };
    });
    expect(await started.answer).toEqual(found);
    await letGo();
  });

  it('shares the connections of requests where none are set aside', async () => {
    await bank.close();
    bank = await open({ poolSize: 1 });
    const letGo = await inBackground(hold);
    await expect(one()).rejects.toMatchObject({ code: 'unavailable' });
    await letGo();
    expect(await inBackground(one)).toEqual(found);
  });
});

it('a connection that comes after the end of the pool is given to nobody, so that the end does not wait for it', async () => {
  const pool = new SplitPool({ connectionString: bank.database.url, max: 2 });
  const late = expect(pool.connect()).rejects.toThrow('Cannot use a pool after calling end on the pool');
  await pool.end();
  await late;
});

describe('a connection that cannot be made', () => {
  const reasons = ['connect EMFILE 127.0.0.1:5432', 'certificate has expired', 'a reason that nobody thought of'];

  it.each(reasons)('is an outage, for requests and for background work: %s', async (reason) => {
    class Refused extends pg.Client {
      override connect = ((callback: (error: Error) => void) => callback(new Error(reason))) as pg.Client['connect'];
    }
    const pool = new SplitPool({ Client: Refused, background: {} });
    for (const connect of [() => pool.connect(), () => inBackground(() => pool.connect())]) {
      const error: unknown = await connect().catch((thrown: unknown) => thrown);
      expect([String(error), isOutage(error)]).toEqual([`Error: ${reason}`, true]);
    }
    expect(isOutage(new Error(reason))).toBe(false);
    await pool.end();
  });
});
