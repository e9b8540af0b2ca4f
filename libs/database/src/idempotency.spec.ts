import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { Account, openBank, type Bank } from './account-fixture.js';
import { ExpiredReplies } from './expired-rows.js';
import { Transactions } from './transactions.js';

let bank: Bank;
let transactions: Transactions;

beforeAll(async () => {
  bank = await openBank();
  transactions = new Transactions(bank.dataSource);
});
afterAll(() => bank.close());
beforeEach(() => bank.dataSource.query('TRUNCATE account, idempotency_key'));

const context = (idempotency?: { key?: string; scope?: string; fingerprint?: string }): CallContext => ({
  requestId: 'request',
  deadlineAtMs: Date.now() + 10_000,
  caller: { kind: 'system', service: 'spec' },
  ...(idempotency && { idempotency: { key: 'key', scope: 'ada POST /account', fingerprint: 'body', ...idempotency } }),
});

interface Reply {
  zeta: number;
  alpha: string;
}

/** Adds an account, and counts how often it did. */
function opening() {
  const counted = {
    count: 0,
    open: (call: CallContext, keep?: (reply: Reply) => Reply) =>
      transactions.once(
        call,
        async (manager): Promise<Reply> => {
          counted.count += 1;
          await manager.insert(Account, { name: `account ${counted.count}`, balanceInCents: counted.count });
          // In an order that jsonb would change.
          return { alpha: 'secret', zeta: counted.count };
        },
        keep && { keep },
      ),
  };
  return counted;
}

const accounts = () => bank.dataSource.getRepository(Account).count();

describe('Transactions.once', () => {
  it('does the work at each call without a key', async () => {
    const { open } = opening();
    await open(context());
    await open(context());
    expect(await accounts()).toBe(2);
  });

  it('answers the same call again without doing it again, in the very words of the first', async () => {
    const { open } = opening();
    const first = await open(context({}));
    expect(JSON.stringify(await open(context({})))).toBe(JSON.stringify(first));
    expect(await accounts()).toBe(1);
  });

  it('takes a key in another scope for another key', async () => {
    const { open } = opening();
    await open(context({}));
    await open(context({ scope: 'bob POST /account' }));
    expect(await accounts()).toBe(2);
  });

  it('refuses the same key with another body', async () => {
    const { open } = opening();
    await open(context({}));
    await expect(open(context({ fingerprint: 'other' }))).rejects.toMatchObject({ code: 'idempotency_mismatch' });
    expect(await accounts()).toBe(1);
  });

  it('refuses a call while one with its key is running, and answers it afterwards', async () => {
    let finish: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (finish = resolve));
    let begun: () => void = () => undefined;
    const begins = new Promise<void>((resolve) => (begun = resolve));
    const first = transactions.once(context({}), async () => {
      begun();
      await running;
      return { done: true };
    });
    await begins;
    const { open } = opening();
    await expect(open(context({}))).rejects.toMatchObject({
      code: 'conflict',
      message: 'A request with this Idempotency-Key is still running.',
    });
    finish();
    await first;
    expect(await open(context({}))).toEqual({ done: true });
    expect(await accounts()).toBe(0);
  });

  it('does the work once for a hundred calls at a time', async () => {
    const { open } = opening();
    const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => open(context({}))));
    expect(await accounts()).toBe(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') expect(outcome.value).toEqual({ zeta: 1, alpha: 'secret' });
      else expect(outcome.reason).toMatchObject({ code: 'conflict' });
    }
  });

  it('gives the kept reply to a hundred calls at a time once the work is done', async () => {
    const { open } = opening();
    await open(context({}));
    const replies = await Promise.all(Array.from({ length: 100 }, () => open(context({}))));
    for (const reply of replies) expect(reply).toEqual({ zeta: 1, alpha: 'secret' });
    expect(await accounts()).toBe(1);
  });

  it('keeps nothing of a call that failed, so that it can be tried again', async () => {
    const refusal = new AppError('conflict', 'No.');
    await expect(transactions.once(context({}), () => Promise.reject(refusal))).rejects.toBe(refusal);
    const { open } = opening();
    await open(context({}));
    expect(await accounts()).toBe(1);
  });

  it('keeps the reply with its secrets masked, and gives the first caller the whole one', async () => {
    const { open } = opening();
    const mask = (reply: Reply) => ({ ...reply, alpha: '***' });
    expect(await open(context({}), mask)).toEqual({ zeta: 1, alpha: 'secret' });
    expect(await open(context({}), mask)).toEqual({ zeta: 1, alpha: '***' });
    const stored = JSON.stringify(await bank.dataSource.query('SELECT * FROM idempotency_key'));
    expect(stored).not.toContain('secret');
  });

  it('loses effect and reply together when the connection breaks between the work and the commit', async () => {
    const broken = transactions.once(context({}), async (manager) => {
      await manager.insert(Account, { name: 'lost', balanceInCents: 0 });
      const [row] = await manager.query<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');
      await bank.dataSource.query('SELECT pg_terminate_backend($1, 5000)', [row?.pid]);
      return { done: true };
    });
    await expect(broken).rejects.toMatchObject({ code: 'unavailable' });
    expect(await accounts()).toBe(0);
    const { open } = opening();
    expect(await open(context({}))).toEqual({ zeta: 1, alpha: 'secret' });
  });

  it('forgets after 24 hours, and the cleaner removes what is forgotten', async () => {
    const { open } = opening();
    await open(context({}));
    await open(context({ key: 'young' }));
    const age = (interval: string, key: string) =>
      bank.dataSource.query(
        `UPDATE idempotency_key SET expires_at = expires_at - $1::interval WHERE reply->>'zeta' = $2`,
        [interval, key],
      );
    await age('23 hours 59 minutes', '1');
    await open(context({}));
    expect(await accounts()).toBe(2);
    await age('1 minute', '1');
    await open(context({}));
    expect(await accounts()).toBe(3);
    await age('24 hours', '3');
    expect(await new ExpiredReplies(bank.dataSource).removeSome()).toBe(false);
    expect(await bank.dataSource.query(`SELECT reply->>'zeta' AS zeta FROM idempotency_key`)).toEqual([{ zeta: '2' }]);
  });
});
