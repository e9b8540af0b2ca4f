import { jest } from '@jest/globals';
import { podWorkloads, workloads, type CreatePool, type PodStart } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import type { GpuaasFixture, ToldTeam } from '../gpuaas-fixture.js';
import { askedBehindLock } from '../subscriptions/behind-lock-fixture.js';
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

/** As `askedBehindLock`, for starts of workloads. Returns the names of the workloads in place of the requests. */
export async function behindLock(
  fixture: GpuaasFixture,
  subscriptionId: string,
  first: () => Promise<unknown>,
  ask: () => Promise<unknown>[],
  meanwhile?: () => Promise<unknown>,
): Promise<{ sizes: number[]; names: string[] }> {
  const asked = jest.spyOn(fixture.get(WorkloadStarting), 'start');
  const { sizes, requests } = await askedBehindLock(fixture, subscriptionId, asked, first, ask, meanwhile);
  return { sizes, names: requests.map(({ name }) => name) };
}
