import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { workloads, type Pool } from '@atoll/contracts/gpuaas';
import { newId, Statements, Transactions } from '@atoll/database';
import { WaitingQueue } from '../allocation/waiting-queue.js';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { GpuSteps } from '../sharing/gpu-steps.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
const terms = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 } as const;

beforeAll(async () => {
  fixture = await GpuaasFixture.start({ workers: { isIdle: true } });
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());
beforeEach(async () => {
  team = await fixture.team();
  nodeName = `node-${newId()}`;
});

const device = async (pool: Pool & Inventory) => {
  const [row] = await fixture.query<{ holders: string[] }>('SELECT holders FROM simulated_device WHERE uuid = $1', [
    (await fixture.gpu(pool)).uuid,
  ]);
  return row?.holders ?? [];
};

/** Time passes for the GPU alone. */
async function settleGpu(pool: Pool & Inventory): Promise<void> {
  do {
    await fixture.query('UPDATE gpu SET parked_until = clock_timestamp() WHERE parked_until IS NOT NULL');
    await fixture.work();
  } while ((await fixture.gpu(pool)).transition !== null);
}

/**
 * Right after the first statement outside of a transaction that reads the leases of this holder, another replica does
 * this.
 */
function between(holderId: string, other: () => Promise<unknown>): jest.Mock {
  const { query } = Statements.prototype;
  const once = jest.fn(other as () => Promise<undefined>);
  jest.spyOn(Statements.prototype, 'query').mockImplementation(async function (this: Statements, text, values) {
    const answer = await query.call(this, text, values);
    const [ids] = values;
    const isLook = text.includes('FROM lease') && Array.isArray(ids) && ids.includes(holderId);
    if (isLook && once.mock.calls.length === 0) await once();
    return answer;
  });
  return once;
}

describe('a step that looks at leases while another replica changes them', () => {
  it('does not take a workload for running whose leases have come just now', async () => {
    const pool = await fixture.pool({ ...terms, overcommit: 8 }, { nodeName });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 8 });
    await fixture.settle();
    const [, , third] = [
      await fixture.start(team, held),
      await fixture.start(team, held),
      await fixture.start(team, held),
    ];
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'busy', 1);
    await fixture.stopWorkload(team, third);
    await fixture.work();
    const late = await fixture.start(team, held);
    expect((await fixture.gpu(pool)).transition).toBe('to_spatial');
    await fixture.query(`UPDATE workload SET due_at = NULL, parked_until = NULL WHERE workload_id = $1`, [
      late.workload_id,
    ]);
    await fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await fixture.gpu(pool)).uuid]);
    // The GPU comes to rest, and nobody has looked for room since.
    jest
      .spyOn(fixture.get(WaitingQueue), 'poll')
      .mockResolvedValue({ againAfterMs: 60_000, reason: { code: 'in_transition', message: '' } });
    await settleGpu(pool);
    jest.restoreAllMocks();
    const served = between(late.workload_id, () => fixture.get(WaitingQueue).poll('workload', late.workload_id));
    await fixture.query(`UPDATE workload SET due_at = clock_timestamp(), parked_until = NULL WHERE workload_id = $1`, [
      late.workload_id,
    ]);
    await fixture.settle();
    expect(served).toHaveBeenCalled();
    const { data } = await fixture.call(workloads.list, { team_id: team.team_id, limit: 100 });
    expect(data.find(({ workload_id }) => workload_id === late.workload_id)?.status).toBe('running');
    const leases = await fixture.query<{ lease_id: string }>(
      'SELECT lease_id::text FROM lease WHERE workload_id = $1',
      [late.workload_id],
    );
    expect(leases).toHaveLength(1);
    expect(await device(pool)).toEqual(expect.arrayContaining(leases.map(({ lease_id }) => lease_id)));
  });

  it('does not grant a subscription whose lease is lost meanwhile', async () => {
    const pool = await fixture.pool({ ...terms, overcommit: 1 }, { nodeName });
    await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
    await fixture.settle();
    const late = await fixture.subscribe(team, { pool_id: pool.pool_id });
    const { gpu_id, transition } = await fixture.gpu(pool);
    expect(transition).toBe('to_temporal');
    const gpus = fixture.get(GpuSteps);
    const lost = between(late.subscription_id, () =>
      fixture
        .get(Transactions)
        .run((manager) =>
          gpus
            .send(manager, gpu_id, 'STAYED', { actor: 'spec', reason: 'refused' }, {})
            .then((moved) => expect(moved?.state).toBe('spatial')),
        ),
    );
    // Only what is to happen between the two moves the GPU.
    await fixture.query(
      `UPDATE gpu SET due_at = NULL, parked_until = clock_timestamp() + interval '30 seconds' WHERE gpu_id = $1`,
      [gpu_id],
    );
    await fixture.settle();
    expect(lost).toHaveBeenCalled();
    expect(await fixture.subscription(team, late)).toMatchObject({ status: 'failed', vgpus_allocated: 0 });
  });
});
