import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { inTransactionBeside } from '@atoll/testing';
import { DataSource } from 'typeorm';
import type { GpuaasFixture } from '../gpuaas-fixture.js';

/**
 * Has all of these asked while a request that came first waits in its transaction for the lock of this subscription,
 * and `meanwhile` done when all of them wait. `asked` spies on the method that requests come to. Returns the numbers of
 * requests that transactions had since, and the requests in the order in which they came to wait.
 */
export async function askedBehindLock<Request>(
  fixture: GpuaasFixture,
  subscriptionId: string,
  asked: { readonly mock: { readonly calls: (readonly [Request, ...unknown[]])[] } },
  first: () => Promise<unknown>,
  ask: () => Promise<unknown>[],
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Promise<{ sizes: number[]; requests: Request[] }> {
  const shared = jest.spyOn(fixture.get(Transactions), 'onceShared');
  const all = await inTransactionBeside(fixture.get(DataSource), async (holder) => {
    await holder.query('SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE', [subscriptionId]);
    const begun = first();
    while (shared.mock.calls.length === 0) await delay(2);
    const others = ask();
    while (asked.mock.calls.length <= others.length) await delay(2);
    await meanwhile();
    return [begun, ...others];
  });
  await Promise.allSettled(all);
  const sizes = shared.mock.calls.slice(1).map(([calls]) => calls.length);
  const requests = asked.mock.calls.slice(1).map(([request]) => request);
  jest.restoreAllMocks();
  return { sizes, requests };
}
