import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { machines } from '@atoll/contracts/operator';
import { teamChanged } from '@atoll/contracts/teams';
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

const resize = ({ subscription_id }: Held, vgpus: number) =>
  fixture.call(subscriptions.resize, { subscription_id, vgpus }, team.member);
const leases = ({ subscription_id }: Held) =>
  fixture.query('SELECT FROM lease WHERE subscription_id = $1', [subscription_id]);
const statusOf = async (held: Held) => (await fixture.subscription(team, held)).status;

async function active(pool_id: string, vgpus: number): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  expect(await statusOf(held)).toBe('active');
  return held;
}

/** What of a pool can still be subscribed to, of its smallest profile. */
async function left(poolId: string): Promise<number> {
  const message = (await errorOf(fixture.subscribe(team, { pool_id: poolId, vgpus: 1_000 }))).message;
  return Number(/Available: (\d+)/.exec(message)?.[1] ?? 0);
}

describe('unsubscribing', () => {
  it('gives everything back, and repeated answers as before and changes nothing', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 7);
    expect((await fixture.unsubscribe(team, held)).status).toBe('unsubscribing');
    expect((await fixture.unsubscribe(team, held)).status).toBe('unsubscribing');
    await fixture.settle();
    expect(await fixture.unsubscribe(team, held)).toMatchObject({
      status: 'unsubscribed',
      vgpus_allocated: 0,
      reason: null,
    });
    expect([(await leases(held)).length, await left(pool_id)]).toEqual([0, 7]);
  });

  it('by many at once is one', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 2);
    const answers = await Promise.all(Array.from({ length: 10 }, () => fixture.unsubscribe(team, held)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['unsubscribing']));
    await fixture.settle();
    const ended = `SELECT FROM machine_history WHERE machine = 'subscription' AND instance = $1 AND event = 'UNSUBSCRIBE'`;
    expect(await fixture.query(ended, [held.subscription_id])).toHaveLength(1);
  });

  it('is possible while it is subscribing: it never becomes active', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await fixture.subscribe(team, { pool_id });
    expect((await fixture.unsubscribe(team, held)).status).toBe('unsubscribing');
    await fixture.settle();
    const states = await fixture.query<{ to_state: string }>(
      `SELECT to_state FROM machine_history WHERE machine = 'subscription' AND instance = $1 ORDER BY id`,
      [held.subscription_id],
    );
    expect(states.map(({ to_state }) => to_state)).toEqual(['subscribing', 'unsubscribing', 'unsubscribed']);
    expect(await left(pool_id)).toBe(7);
  });

  it('is possible while its GPU is on the way to Temporal for it: the GPU returns', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'], allow_fallback: true, temporal_replicas: 3 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
    expect(await fixture.gpu(pool)).toMatchObject({ transition: 'to_temporal' });
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect(await statusOf(held)).toBe('unsubscribed');
    expect(await fixture.gpu(pool)).toMatchObject({
      mode: 'Spatial',
      origin: 'configured',
      transition: null,
      slices: [],
      tenants: [],
    });
  });

  it('while workloads run is refused and names them; with force they are stopped first', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 3);
    const [one, two] = [await fixture.start(team, held), await fixture.start(team, held, 2)];
    await fixture.settle();
    const { code, message } = await errorOf(fixture.unsubscribe(team, held));
    expect([code, message]).toEqual([
      'conflict',
      `Workloads run on the subscription: ${one.workload_id} (job), ${two.workload_id} (job). Stop them, or send force: true.`,
    ]);
    expect(await statusOf(held)).toBe('active');
    expect((await fixture.unsubscribe(team, held, true)).status).toBe('unsubscribing');
    await fixture.settle();
    const { data } = await fixture.call(workloads.list, { team_id: team.team_id, include_ended: 'true' });
    expect(data.map(({ status }) => status)).toEqual(['stopped', 'stopped']);
    expect([await statusOf(held), await left(pool_id)]).toEqual(['unsubscribed', 7]);
  });

  it('names ten workloads and how many more there are', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 12 });
    const held = await active(pool_id, 12);
    await Promise.all(Array.from({ length: 12 }, () => fixture.start(team, held)));
    expect((await errorOf(fixture.unsubscribe(team, held))).message).toMatch(
      /^(?:[^,]*,){9}[^,]* and 2 more\. Stop them/,
    );
  });

  it('while workloads are stopping waits for them, by force or not', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 1);
    const job = await fixture.start(team, held);
    await fixture.settle();
    await fixture.stopWorkload(team, job);
    const { code } = await errorOf(fixture.unsubscribe(team, held));
    expect(code).toBe('conflict');
    await fixture.unsubscribe(team, held, true);
    await fixture.settle();
    expect(await statusOf(held)).toBe('unsubscribed');
  });

  it('goes on where a worker of a release without the draining of subscriptions has left one at rest in it', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 1);
    await fixture.query(
      `UPDATE subscription SET state = 'draining', deadline_at = NULL, due_at = NULL, parked_until = NULL WHERE subscription_id = $1`,
      [held.subscription_id],
    );
    const listed = () =>
      fixture.call(machines('gpuaas').list, { service: 'gpuaas', machine: 'subscription', kind: 'waiting' });
    expect((await listed()).data).toContainEqual(
      expect.objectContaining({ key: held.subscription_id, state: 'draining' }),
    );
    await fixture.settle();
    expect([await statusOf(held), (await leases(held)).length, (await listed()).data]).toEqual(['unsubscribed', 0, []]);
  });

  it('at the same time as a resize or the start of a workload leaves nothing behind', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 12 });
    for (let round = 0; round < 6; round += 1) {
      const held = await active(pool_id, 2);
      const isForced = round % 2 === 0;
      await Promise.allSettled([
        resize(held, 5),
        fixture.start(team, held),
        fixture.unsubscribe(team, held, isForced),
        resize(held, 1),
      ]);
      await fixture.settle();
      if ((await statusOf(held)) === 'active') await fixture.unsubscribe(team, held, true);
      await fixture.settle();
      expect([await statusOf(held), (await leases(held)).length, await left(pool_id)]).toEqual(['unsubscribed', 0, 12]);
      const live = `SELECT FROM workload WHERE subscription_id = $1 AND state NOT IN ('stopped', 'failed')`;
      expect(await fixture.query(live, [held.subscription_id])).toEqual([]);
    }
  });

  it('is allowed to a suspended team and to one that is being deleted', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const [one, two] = [await active(pool_id, 1), await active(pool_id, 1)];
    const told = { team_id: team.team_id, name: 'x', workspaces: [{ id: team.workspace_id, name: 'default' }] };
    await fixture.tell(teamChanged, { ...told, revision: 2, is_suspended: true, status: 'active' });
    expect((await fixture.unsubscribe(team, one)).status).toBe('unsubscribing');
    await fixture.tell(teamChanged, { ...told, revision: 3, is_suspended: true, status: 'deleting' });
    expect((await fixture.unsubscribe(team, two)).status).toBe('unsubscribing');
  });
});
