import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { workloads, type StartWorkload, type Workload } from '@atoll/contracts/gpuaas';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

type Held = { subscription_id: string };

const mps = (replicas: number, more: object = {}) => ({ mechanism: 'mps', replicas, ...more }) as const;
const list = async (more: object = {}, caller = team.member) =>
  (await fixture.call(workloads.list, { team_id: team.team_id, ...more }, caller)).data;
const statusOf = async ({ workload_id }: Workload) =>
  (await list({ include_ended: 'true', limit: 100 })).find((each) => each.workload_id === workload_id);
const start = ({ subscription_id }: Held, more: Partial<StartWorkload> = {}, caller = team.member) =>
  fixture.call(workloads.start, { name: 'job', subscription_id, ...more }, caller);

async function active(pool_id: string, vgpus = 1): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return held;
}

/** How many of the leases of a subscription are occupied, and how many there are. */
async function occupied({ subscription_id }: Held): Promise<[number, number]> {
  const [row] = await fixture.query<{ used: number; all: number }>(
    'SELECT count(workload_id)::int AS used, count(*)::int AS all FROM lease WHERE subscription_id = $1',
    [subscription_id],
  );
  return [row?.used ?? 0, row?.all ?? 0];
}

describe('a workload', () => {
  it('waits for its node, runs, stops, and gives back what it occupied', async () => {
    const pool = await fixture.pool(mps(4));
    const held = await active(pool.pool_id, 3);
    const job = await start(held, { vgpus: 2, name: 'training' });
    expect(job).toEqual({
      workload_id: expect.stringMatching(/^\d+$/),
      subscription_id: held.subscription_id,
      team_id: team.team_id,
      name: 'training',
      vgpus: 2,
      status: 'pending',
      reason: null,
      created_at: expect.stringMatching(/\.\d{3}Z$/),
    });
    await fixture.settle();
    expect(await statusOf(job)).toEqual({ ...job, status: 'running' });
    expect(await occupied(held)).toEqual([2, 3]);
    expect((await fixture.gpu(pool)).slices.map(({ state }) => state).toSorted()).toEqual([
      'leased',
      'occupied',
      'occupied',
    ]);
    expect((await fixture.stopWorkload(team, job)).status).toBe('stopping');
    await fixture.settle();
    expect([await statusOf(job), await occupied(held)]).toEqual([{ ...job, status: 'stopped' }, [0, 3]]);
  });

  it('has one vGPU unless said', async () => {
    const held = await active((await fixture.pool(mps(2))).pool_id, 2);
    expect((await start(held)).vgpus).toBe(1);
  });

  it('may span GPUs of one pool', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'] }, { count: 2 });
    const held = await active(pool.pool_id, 2);
    const job = await start(held, { vgpus: 2 });
    await fixture.settle();
    expect((await statusOf(job))?.status).toBe('running');
    for (const at of [0, 1])
      expect((await fixture.gpu(pool, at)).slices).toMatchObject([{ workload_id: job.workload_id }]);
  });

  it('that is more than its subscription has free is refused with what would fit, and nothing is written', async () => {
    const held = await active((await fixture.pool(mps(8))).pool_id, 5);
    await start(held, { vgpus: 3 });
    const { code, message } = await errorOf(start(held, { vgpus: 3 }));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      'The subscription has 5 vGPUs and 3 of them are in use. Available: 2.',
    ]);
    expect([(await list()).length, await occupied(held)]).toEqual([1, [3, 5]]);
    expect((await start(held, { vgpus: 2 })).status).toBe('pending');
  });

  it('is started by many at once as often as the subscription has vGPUs', async () => {
    const held = await active((await fixture.pool(mps(8))).pool_id, 5);
    const answers = await Promise.allSettled(Array.from({ length: 20 }, () => start(held)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(await occupied(held)).toEqual([5, 5]);
  });

  it('is started by twice as many callers at once as the service has connections, also just after a restart', async () => {
    const held = await active((await fixture.pool(mps(40))).pool_id, 40);
    // As after a restart: no pool was read yet.
    (fixture.get(PoolCatalogue) as unknown as { known: Map<string, unknown> }).known.clear();
    const jobs = await Promise.all(Array.from({ length: 40 }, () => start(held)));
    expect(new Set(jobs.map(({ workload_id }) => workload_id)).size).toBe(40);
  });

  it('of one Idempotency-Key is one', async () => {
    const held = await active((await fixture.pool(mps(2))).pool_id, 2);
    const key = { key: newId(), fingerprint: 'body' };
    const again = () =>
      fixture.call(workloads.start, { subscription_id: held.subscription_id, name: 'job' }, team.member, key);
    expect(await again()).toEqual(await again());
    expect(await list()).toHaveLength(1);
  });

  it.each([0, -1, 1.5, 1_000_000_000])('of %d vGPUs is refused', async (vgpus) => {
    const held = await active((await fixture.pool(mps(2))).pool_id);
    const { code, details } = await errorOf(start(held, { vgpus }));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'vgpus']);
  });

  it('starts on an active subscription alone', async () => {
    const { pool_id } = await fixture.pool(mps(2));
    const held = await fixture.subscribe(team, { pool_id });
    const refused = async () => (await errorOf(start(held))).message;
    expect(await refused()).toBe(
      'The subscription is subscribing; workloads can start only on an active subscription.',
    );
    await fixture.settle();
    await fixture.unsubscribe(team, held);
    expect(await refused()).toBe(
      'The subscription is unsubscribing; workloads can start only on an active subscription.',
    );
    await fixture.settle();
    expect(await refused()).toBe(
      'The subscription is unsubscribed; workloads can start only on an active subscription.',
    );
  });

  it('of a suspended team does not start, and stops', async () => {
    const held = await active((await fixture.pool(mps(2))).pool_id, 2);
    const job = await start(held);
    const told = {
      team_id: team.team_id,
      name: 'x',
      workspaces: [{ id: team.workspace_id, name: 'default' }],
      status: 'active' as const,
    };
    await fixture.tell(teamChanged, { ...told, revision: 2, is_suspended: true });
    expect((await errorOf(start(held))).code).toBe('team_suspended');
    expect((await fixture.stopWorkload(team, job)).status).toBe('stopping');
  });
});

describe('stopping a workload', () => {
  it('repeated, or by many at once, is once', async () => {
    const held = await active((await fixture.pool(mps(2))).pool_id);
    const job = await start(held);
    await fixture.settle();
    const answers = await Promise.all(Array.from({ length: 8 }, () => fixture.stopWorkload(team, job)));
    expect(answers.every(({ status }) => status === 'stopping')).toBe(true);
    await fixture.settle();
    expect((await fixture.stopWorkload(team, job)).status).toBe('stopped');
    const stops = `SELECT FROM machine_history WHERE machine = 'workload' AND instance = $1 AND event = 'STOP'`;
    expect(await fixture.query(stops, [job.workload_id])).toHaveLength(1);
  });

  it('is possible before it runs: then it never does', async () => {
    const held = await active((await fixture.pool(mps(2))).pool_id);
    const job = await start(held);
    await fixture.stopWorkload(team, job);
    await fixture.settle();
    const states = await fixture.query<{ to_state: string }>(
      `SELECT to_state FROM machine_history WHERE machine = 'workload' AND instance = $1 ORDER BY id`,
      [job.workload_id],
    );
    expect(states.map(({ to_state }) => to_state)).toEqual(['pending', 'stopping', 'stopped']);
  });
});

describe('a workload with overcommit', () => {
  it('takes its leases when it starts and gives them back when it stops; an entitlement alone takes none', async () => {
    const pool = await fixture.pool(mps(2, { overcommit: 3 }));
    const held = await active(pool.pool_id, 6);
    expect(await occupied(held)).toEqual([0, 0]);
    const job = await start(held, { vgpus: 2 });
    await fixture.settle();
    expect(await occupied(held)).toEqual([2, 2]);
    const { code, message } = await errorOf(start(held));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool.pool_name} has no capacity for 1 vGPU of mps-2. Available: nothing.`,
    ]);
    await fixture.stopWorkload(team, job);
    await fixture.settle();
    expect(await occupied(held)).toEqual([0, 0]);
    expect((await start(held)).status).toBe('pending');
  });

  it('of two teams that want the last slice at once runs for one of them', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'], overcommit: 2 });
    const held = await active(pool.pool_id);
    const other = await fixture.team();
    const theirs = await fixture.subscribe(other, { pool_id: pool.pool_id });
    await fixture.settle();
    const answers = await Promise.allSettled([start(held), start(theirs, {}, other.member)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('the workloads of a team', () => {
  it('are listed in the order they began, in pages from 1, of one subscription where asked, with those that ended where asked', async () => {
    const { pool_id } = await fixture.pool(mps(8));
    const [one, two] = [await active(pool_id, 4), await active(pool_id, 2)];
    const jobs: Workload[] = [];
    for (const held of [one, two, one, one]) jobs.push(await start(held));
    await fixture.stopWorkload(team, jobs[2] ?? { workload_id: '' });
    await fixture.settle();
    const ids = async (more: object) =>
      (await list(more)).map(({ workload_id }) => jobs.findIndex((job) => job.workload_id === workload_id));
    expect(await ids({})).toEqual([0, 1, 3]);
    expect(await ids({ include_ended: 'true' })).toEqual([0, 1, 2, 3]);
    expect(await ids({ subscription_id: one.subscription_id })).toEqual([0, 3]);
    expect(await ids({ limit: 2, page: 2 })).toEqual([3]);
    expect(await ids({ page: 3 })).toEqual([]);
    expect((await fixture.call(workloads.list, { team_id: team.team_id, limit: 2 })).pagination).toEqual({
      page: 1,
      limit: 2,
      total: 3,
    });
  });

  it('are for the team alone; a subscription of another team is not found', async () => {
    const other = await fixture.team();
    const { pool_id } = await fixture.pool(mps(2));
    const { subscription_id } = await fixture.subscribe(other, { pool_id });
    const [foreign, unknown] = [
      await errorOf(list({ subscription_id })),
      await errorOf(list({ subscription_id: '999999999' })),
    ];
    expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
    expect((await errorOf(list({}, other.member))).code).toBe('not_found');
    expect((await errorOf(fixture.call(workloads.list, { team_id: newId() }))).code).toBe('not_found');
    const viewer = { ...team.member, teams: [{ teamId: team.team_id, role: 'viewer' as const }] };
    expect(await list({}, viewer)).toEqual([]);
  });
});
