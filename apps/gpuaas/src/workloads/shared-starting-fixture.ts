import { jest } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { DataSource } from 'typeorm';
import type { GpuaasFixture } from '../gpuaas-fixture.js';
import { WorkloadStarting } from './workload-starting.js';

const pause = () => new Promise((resolve) => setTimeout(resolve, 2));

/**
 * Has all of these asked while the start of a workload that came first waits in its transaction for the lock of this subscription, and `meanwhile` done when
 * all of them wait. Returns the numbers of requests that transactions had since, and the names of the workloads in the order in which the requests came to wait.
 */
export async function behindLock(
  fixture: GpuaasFixture,
  subscriptionId: string,
  first: () => Promise<unknown>,
  ask: () => Promise<unknown>[],
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Promise<{ sizes: number[]; names: string[] }> {
  const asked = jest.spyOn(fixture.get(WorkloadStarting), 'start');
  const shared = jest.spyOn(fixture.get(Transactions), 'onceShared');
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.connect();
  await holder.startTransaction();
  await holder.query('SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE', [subscriptionId]);
  const begun = first();
  while (shared.mock.calls.length === 0) await pause();
  const all = ask();
  while (asked.mock.calls.length <= all.length) await pause();
  await meanwhile();
  await holder.commitTransaction();
  await holder.release();
  await Promise.allSettled([begun, ...all]);
  const sizes = shared.mock.calls.slice(1).map(([calls]) => calls.length);
  const names = asked.mock.calls.slice(1).map(([{ name }]) => name);
  jest.restoreAllMocks();
  return { sizes, names };
}
