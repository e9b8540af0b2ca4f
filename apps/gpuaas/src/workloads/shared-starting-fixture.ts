import { jest } from '@jest/globals';
import { podWorkloads, workloads, type CreatePool, type PodStart } from '@atoll/contracts/gpuaas';
import { newId, Transactions } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { DataSource } from 'typeorm';
import type { GpuaasFixture, ToldTeam } from '../gpuaas-fixture.js';
import { WorkloadStarting } from './workload-starting.js';

/** A subscription that somebody has. */
export interface Held {
  readonly subscription_id: string;
  readonly of: ToldTeam;
}

type Size = readonly [of: ToldTeam, vgpus: number];

export const newPod = (): PodStart => ({ pod_id: newId(), start: 1 });

/** How workloads are asked for. */
export function startsOn(fixture: () => GpuaasFixture) {
  const held = async (of: ToldTeam, pool_id: string, vgpus: number): Promise<Held> => ({
    of,
    subscription_id: (await fixture().subscribe(of, { pool_id, vgpus })).subscription_id,
  });
  return {
    held,
    start: ({ subscription_id, of }: Held, { vgpus = 1, name = 'job', key = '' } = {}) =>
      fixture().call(
        workloads.start,
        { subscription_id, name, vgpus },
        of.member,
        key === '' ? undefined : { key, fingerprint: 'f' },
      ),
    startPod: ({ subscription_id }: Held, { vgpus = 1, name = 'job', pod = newPod() } = {}) =>
      fixture().ask(
        podWorkloads.start,
        { ...pod, subscription_id, vgpus, pod_name: name },
        systemContext('pods', { deadlineMs: 120_000 }),
      ),
    /** Subscriptions to one pool of MPS shares, and one in front of them. */
    crowd: async (terms: Partial<CreatePool>, [of, vgpus]: Size, sizes: readonly Size[], count = 1) => {
      const pool = await fixture().pool({ mechanism: 'mps', ...terms }, { count });
      const plug = await held(of, pool.pool_id, vgpus);
      const all: Held[] = [];
      for (const [each, size] of sizes) all.push(await held(each, pool.pool_id, size));
      await fixture().settle();
      return { pool, plug, all };
    },
  };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 2));

/**
 * Has all of these asked while the start of a workload that came first waits in its transaction for the lock of this
 * subscription, and `meanwhile` done when all of them wait. Returns the numbers of requests that transactions had
 * since, and the names of the workloads in the order in which the requests came to wait.
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
