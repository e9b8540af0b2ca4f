import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { CallContext, UserCaller } from '@atoll/contracts';
import { errorOf, lockWaits, timeoutFactor, untilLockWaits } from '@atoll/testing';
import type { EntityManager } from 'typeorm';
import { Account, bankOptions, openBank, type Bank } from './account-fixture.js';
import { poolOf } from './data-source.js';
import { openDataSource } from './open-data-source.js';
import { takeTurn } from './take-turn.js';
import { Transactions } from './transactions.js';
import { Writers } from './writers.js';

let bank: Bank;
let writers: Writers;
beforeAll(async () => {
  bank = await openBank({ poolSize: 4 });
  writers = new Writers(new Transactions(bank.dataSource));
});
afterAll(() => bank.close());
beforeEach(() => bank.dataSource.query('TRUNCATE account, idempotency_key'));

const someone: UserCaller = {
  kind: 'user',
  userId: 'ada',
  credential: { kind: 'key', id: 'key' },
  scope: 'user',
  platformAdmin: false,
  timezone: 'UTC',
  teams: [],
};
const operator: UserCaller = { ...someone, userId: 'op', platformAdmin: true };
const context = (more: Partial<CallContext> = {}): CallContext => ({
  requestId: 'request',
  deadlineAtMs: Date.now() + 60_000 * timeoutFactor,
  caller: someone,
  ...more,
});
const withKey = (key: string) => context({ idempotency: { scope: 'ada POST /account', key, fingerprint: 'body' } });

const open = (name: string) => (manager: EntityManager) => manager.insert(Account, { name, balanceInCents: 0 });

/** A writer of the lane that has its turn until `finish` is called. */
function onTurn(lane: string): { first: Promise<void>; finish: () => void } {
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  return { first: writers.run(lane, context(), () => promise), finish };
}

describe('the writers of one lane', () => {
  it('hold one connection while another replica is frozen on its turn, and others write meanwhile', async () => {
    const replica = await openDataSource(bankOptions(bank.database.url));
    const frozen = replica.createQueryRunner();
    await frozen.startTransaction();
    await takeTurn(frozen.manager, 'quay');
    const write = (name: string) =>
      writers.run('quay', context(), async (manager) => {
        await takeTurn(manager, 'quay');
        await open(name)(manager);
      });
    const names = Array.from({ length: 20 }, (_, at) => `boat ${at}`);
    const written = names.map(write);
    await untilLockWaits(bank.dataSource);
    for (let round = 0; round < 3; round += 1) {
      await writers.run('dock', context(), open(`other ${round}`));
      expect(await lockWaits(bank.dataSource)).toHaveLength(1);
      expect(poolOf(bank.dataSource).waitingCount).toBe(0);
    }
    await frozen.rollbackTransaction();
    await frozen.release();
    await Promise.all(written);
    expect(await bank.dataSource.getRepository(Account).count()).toBe(23);
    await replica.destroy();
  });

  it('are refused with 429 and a time to come again, over 32 that wait; those of the operator never are, and go first in their order', async () => {
    const order: string[] = [];
    const write = (name: string, caller = someone) =>
      writers.run('quay', context({ caller }), () => Promise.resolve(order.push(name)));
    const { first, finish } = onTurn('quay');
    const waiting = Array.from({ length: 32 }, (_, at) => write(`writer ${at}`));
    expect((await errorOf(write('writer 32'))).toWire()).toEqual({
      code: 'too_many_requests',
      message: 'Too many requests. Please try again later.',
      retryAfterSeconds: 1,
    });
    const byOperator = ['first', 'second', 'third'].map((name) => write(name, operator));
    expect(await writers.run('dock', context(), () => Promise.resolve('another lane'))).toBe('another lane');
    finish();
    await Promise.all([first, ...byOperator, ...waiting]);
    expect(order).toEqual(['first', 'second', 'third', ...Array.from({ length: 32 }, (_, at) => `writer ${at}`)]);
    expect(await write('afterwards')).toBe(36);
  });

  it('are refused when their patience ends before their turn comes, and hold up nobody afterwards', async () => {
    const { first, finish } = onTurn('quay');
    const [refused, kept] = [
      errorOf(writers.run('quay', context({ deadlineAtMs: Date.now() + 1_050 }), () => Promise.resolve())),
      writers.run('quay', context(), () => Promise.resolve('kept')),
    ];
    expect((await refused).code).toBe('too_many_requests');
    finish();
    await first;
    expect(await kept).toBe('kept');
    expect(await writers.run('quay', context(), () => Promise.resolve('next'))).toBe('next');
  });

  it('wait for half of what their deadline leaves beside a second for the work, and not at all where that is nothing', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    try {
      const { first, finish } = onTurn('quay');
      const refused: number[] = [];
      const refusals = [900, 5_000].map((deadlineMs) =>
        errorOf(writers.run('quay', context({ deadlineAtMs: Date.now() + deadlineMs }), () => Promise.resolve())).then(
          () => refused.push(deadlineMs),
        ),
      );
      await jest.advanceTimersByTimeAsync(1);
      expect(refused).toEqual([900]);
      await jest.advanceTimersByTimeAsync(1_998);
      expect(refused).toEqual([900]);
      await jest.advanceTimersByTimeAsync(1);
      expect(refused).toEqual([900, 5_000]);
      finish();
      await Promise.all([first, ...refusals]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('leave their turn to the next one when they fail', async () => {
    await expect(writers.run('quay', context(), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await writers.run('quay', context(), () => Promise.resolve('next'))).toBe('next');
  });

  it('get the kept reply, twenty at once, when the call is done', async () => {
    const done = await writers.once('quay', withKey('done'), () => Promise.resolve({ done: true }));
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => writers.once('quay', withKey('done'), () => Promise.resolve({ done: false }))),
    );
    expect(replies).toEqual(replies.map(() => done));
  });

  it('with one Idempotency-Key get 409 at once while the first of them waits, and its reply afterwards', async () => {
    const { first, finish } = onTurn('quay');
    const openOnce = () =>
      writers.once('quay', withKey('one'), async (manager) => {
        await open('boat')(manager);
        return { name: 'boat' };
      });
    const waiting = openOnce();
    expect(await errorOf(openOnce())).toMatchObject({
      code: 'conflict',
      message: 'A request with this Idempotency-Key is still running.',
    });
    finish();
    await first;
    expect(await waiting).toEqual({ name: 'boat' });
    expect(await openOnce()).toEqual({ name: 'boat' });
    expect(await bank.dataSource.getRepository(Account).count()).toBe(1);
  });
});
