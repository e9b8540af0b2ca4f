import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type UsageTold } from '@atoll/contracts/billing';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { teamChanged, teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
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

const codesOf = async (calls: Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).map((call) =>
    call.status === 'fulfilled' ? 'accepted' : (call.reason as { code: string }).code,
  );

describe('a pool that many ask at once', () => {
  it.each([
    ['MIG slices', { profiles: ['1g.10gb'] }, 14],
    ['MPS shares', { mechanism: 'mps', replicas: 5 }, 10],
    ['turns', { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 6 }, 12],
    ['MIG slices sold three times', { profiles: ['2g.20gb'], overcommit: 3 }, 18],
    [
      'turns of GPUs that fall back for them',
      { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 5 },
      10,
    ],
  ] as const)('sells all of its %s, and none twice', async (_, terms, capacity) => {
    const pool = await fixture.pool(terms as object, { count: 2 });
    const codes = await codesOf(Array.from({ length: 40 }, () => fixture.subscribe(team, { pool_id: pool.pool_id })));
    expect(codes.filter((code) => code === 'accepted').length).toBe(capacity);
    expect(codes.filter((code) => code === 'insufficient_capacity').length).toBe(40 - capacity);
    expect(await codesOf([fixture.subscribe(team, { pool_id: pool.pool_id })])).toEqual(['insufficient_capacity']);
    const wrong = await fixture.query(
      `SELECT gpu_id FROM gpu WHERE pool_id = $1 AND (slots_used, turns_used) IS DISTINCT FROM (
         coalesce((SELECT bit_or(((1::bigint << slot_size) - 1) << slot_start) FROM lease WHERE gpu_id = gpu.gpu_id AND slot_start IS NOT NULL), 0),
         coalesce((SELECT bit_or(1::bigint << turn) FROM lease WHERE gpu_id = gpu.gpu_id AND turn IS NOT NULL), 0))`,
      [pool.pool_id],
    );
    expect(wrong).toEqual([]);
  });

  it('does not refuse what fits because another, who takes it or not, is at it', async () => {
    const pool = await fixture.pool({ profiles: ['3g.40gb'] }, { count: 3 });
    const codes = await codesOf([1, 2, 3].map((vgpus) => fixture.subscribe(team, { pool_id: pool.pool_id, vgpus })));
    expect(codes).toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('is kept by PostgreSQL itself from being booked twice', async () => {
    const pool = await fixture.pool({ profiles: ['2g.20gb'] });
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id });
    const copy = (slot: string, turn: string) =>
      fixture.query(
        `INSERT INTO lease (gpu_id, subscription_id, profile, slot_start, slot_size, turn)
         SELECT gpu_id, subscription_id, profile, ${slot}, slot_size, ${turn} FROM lease WHERE subscription_id = $1 LIMIT 1`,
        [subscription_id],
      );
    await expect(copy('slot_start', 'NULL')).rejects.toThrow('lease_slots');
    await expect(copy('slot_start + 1', 'NULL')).rejects.toThrow('lease_slots');
    await copy('slot_start - 2', '3');
    await expect(copy('NULL', '3')).rejects.toThrow('lease_turn');
    await expect(copy('NULL', 'NULL')).rejects.toThrow('lease_place_check');
  });
});

describe('a subscription', () => {
  it('is one for one idempotency key, whatever is repeated', async () => {
    const pool = await fixture.pool();
    const ask = () =>
      fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id: pool.pool_id, vgpus: 1 }, team.member, {
        key: 'k',
        fingerprint: 'f',
      });
    const first = await ask();
    expect(await ask()).toEqual(first);
    expect(await fixture.query('SELECT FROM lease WHERE subscription_id = $1', [first.subscription_id])).toHaveLength(
      1,
    );
    expect(first).toMatchObject({
      profile: '1g.10gb',
      v_ram_gb: 10,
      workspace_id: team.workspace_id,
      status: 'subscribing',
    });
  });

  it('can be left before it is granted, and costs nothing then', async () => {
    const pool = await fixture.pool();
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
    expect((await fixture.unsubscribe(team, held)).status).toBe('unsubscribing');
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'unsubscribed', vgpus_allocated: 0 });
    expect(factsOf(held.subscription_id)).toEqual([]);
  });

  it('is told to billing from its grant to its end, with each change, to the millisecond', async () => {
    const pool = await fixture.pool();
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2, name: 'training' });
    await fixture.settle();
    await fixture.call(subscriptions.resize, { subscription_id: held.subscription_id, vgpus: 5 }, team.member);
    await fixture.settle();
    await fixture.call(subscriptions.resize, { subscription_id: held.subscription_id, vgpus: 1 }, team.member);
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    const told = await toldOf(held.subscription_id, 4);
    const history = await fixture.query<{ at: Date }>(
      `SELECT at FROM machine_history WHERE machine = 'subscription' AND instance = $1 AND to_state IN ('active', 'unsubscribed') ORDER BY id`,
      [held.subscription_id],
    );
    expect(told.map(({ quantity }) => quantity)).toEqual(['2', '5', '1', '0']);
    expect(told.map(({ time }) => time)).toEqual(history.map(({ at }) => at.toISOString()));
    expect(told[0]).toMatchObject({
      resource_id: `gpuaas_pool:${held.subscription_id}`,
      resource_name: 'training',
      sku: 'gpu.A100-80GB.1g.10gb',
      pool_id: pool.pool_id,
      attributes: { pool_name: pool.pool_name, pool_profiles: 5, profile: '1g.10gb', v_ram_gb: 10 },
    });
  });

  it('is refused to strangers, viewers, suspended teams and teams that are being deleted', async () => {
    const pool = await fixture.pool();
    const ask = (caller: object) =>
      errorOf(
        fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id: pool.pool_id, vgpus: 1 }, caller),
      );
    expect((await ask((await fixture.team()).member)).code).toBe('not_found');
    expect((await ask({ ...team.member, teams: [{ teamId: team.team_id, role: 'viewer' }] })).code).toBe('forbidden');
    const told = { team_id: team.team_id, name: 'x', workspaces: [{ id: team.workspace_id, name: 'default' }] };
    await fixture.tell(teamChanged, { ...told, revision: 2, is_suspended: true, status: 'active' });
    expect((await ask(team.member)).code).toBe('team_suspended');
    await fixture.tell(teamChanged, { ...told, revision: 3, is_suspended: false, status: 'deleting' });
    expect((await ask(team.member)).code).toBe('conflict');
  });

  it('is never taken for a team of which it was told that it holds nothing', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
    const asked = Array.from({ length: 6 }, () => fixture.subscribe(team, { pool_id: pool.pool_id }));
    const attempt_id = newId();
    const closing = fixture.tell(teamDeletionRequested, { team_id: team.team_id, revision: 2, attempt_id });
    const codes = await codesOf([...asked, closing]);
    const answers = () =>
      fixture.events.filter(({ payload }) => (payload as { attempt_id?: string }).attempt_id === attempt_id);
    while (answers().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const { holds } = answers()[0]!.payload as { holds: string | null };
    const accepted = codes.slice(0, 6).filter((code) => code === 'accepted').length;
    if (holds === null) {
      expect(accepted).toBe(0);
      expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('conflict');
    } else expect(accepted).toBeGreaterThan(0);
  });
});

function factsOf(subscriptionId: string): UsageTold['facts'] {
  return fixture.events
    .filter(({ name }) => name === 'gpuaas.usage_told')
    .flatMap(({ payload }) => (payload as UsageTold).facts)
    .filter(({ resource_id }) => resource_id === `gpuaas_pool:${subscriptionId}`)
    .sort((one, other) => (one.sequence ?? 0) - (other.sequence ?? 0));
}

async function toldOf(subscriptionId: string, count: number): Promise<UsageTold['facts']> {
  while (factsOf(subscriptionId).length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  return factsOf(subscriptionId);
}
