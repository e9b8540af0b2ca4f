import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { poolGpus, type PoolGpuPage } from '@atoll/contracts/gpuaas';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let ours: ToldTeam;
let theirs: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  ours = await fixture.team('viewer');
  theirs = await fixture.team();
});
afterAll(() => fixture.stop());

const seenBy = ({ team_id, member }: ToldTeam, { pool_id }: { pool_id: string }, page = {}): Promise<PoolGpuPage> =>
  fixture.call(poolGpus.list, { pool_id, team_id, ...page }, member);

describe('the GPUs of a pool, as a team sees them', () => {
  it('show what is held, and of others neither who nor what they do', async () => {
    const member = await fixture.team();
    const pool = await fixture.pool({ profiles: ['1g.10gb', '3g.40gb'] });
    const own = await fixture.subscribe(member, { pool_id: pool.pool_id, profile: '3g.40gb' });
    const other = await fixture.subscribe(theirs, { pool_id: pool.pool_id, profile: '1g.10gb' });
    await fixture.settle();
    const { workload_id } = await fixture.start(member, own);
    await fixture.start(theirs, other);
    await fixture.settle();
    const { data, pagination } = await seenBy(member, pool);
    expect(pagination).toEqual({ page: 1, limit: 10, total: 1 });
    expect(data).toEqual([
      {
        gpu_id: expect.any(String),
        board: 'A100-80GB',
        mode: 'Spatial',
        origin: 'configured',
        transition: null,
        slots: 8,
        slices: expect.any(Array),
        tenants: [],
      },
    ]);
    const { subscription_id } = own;
    expect(data[0]?.slices).toHaveLength(2);
    expect(data[0]?.slices).toEqual(
      expect.arrayContaining([
        { profile: '3g.40gb', start: 4, size: 4, v_ram_gb: 40, subscription_id, workload_id, state: 'occupied' },
        {
          profile: '1g.10gb',
          start: expect.any(Number),
          size: 1,
          v_ram_gb: 10,
          subscription_id: null,
          workload_id: null,
          state: null,
        },
      ]),
    );
    expect(JSON.stringify(await seenBy(ours, pool))).not.toContain(`"subscription_id":"`);
  });

  it('have as many slots as replicas or turns', async () => {
    const byMps = await fixture.pool({ mechanism: 'mps', replicas: 3 });
    const byTime = await fixture.pool({ sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 6 });
    expect((await seenBy(ours, byMps)).data[0]?.slots).toBe(3);
    expect((await seenBy(ours, byTime)).data[0]).toMatchObject({ mode: 'Temporal', slots: 6 });
  });

  it('are given by pages', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { count: 3 });
    const first = await seenBy(ours, pool, { page: 1, limit: 2 });
    const second = await seenBy(ours, pool, { page: 2, limit: 2 });
    expect([...first.data, ...second.data].map(({ gpu_id }) => gpu_id)).toEqual(pool.gpu_ids);
    expect(second.pagination).toEqual({ page: 2, limit: 2, total: 3 });
  });

  it('are for members of the team that is named, and of pools that exist', async () => {
    const pool = await fixture.pool();
    const asOther = fixture.call(poolGpus.list, { pool_id: pool.pool_id, team_id: ours.team_id }, theirs.member);
    expect(await errorOf(asOther)).toMatchObject({ code: 'not_found', message: 'No such team.' });
    expect(await errorOf(seenBy(ours, { pool_id: '999999999' }))).toMatchObject({
      code: 'not_found',
      message: 'No such pool.',
    });
  });
});
