import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { subscriptions, type Subscribe } from '@atoll/contracts/gpuaas';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const callers = 50;
const ask = (terms: Partial<Subscribe> & { pool_id: string }, caller = team.member) =>
  fixture.call(subscriptions.subscribe, { team_id: team.team_id, vgpus: 1, ...terms }, caller);

/** How many of all calls came through, and what the others failed of. */
async function all(calls: Promise<unknown>[]): Promise<{ accepted: number; refused: AppError[] }> {
  const answers = await Promise.allSettled(calls);
  const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as AppError] : []));
  return { accepted: answers.length - refused.length, refused };
}

interface Booked {
  leases: number;
  isCounted: boolean;
  vgpus: number;
}

/**
 * What is booked of a pool by the rows of its leases, whether the masks of its GPUs say the same, and what its
 * subscriptions were promised.
 */
async function booked(poolId: string): Promise<Booked | undefined> {
  const [row] = await fixture.query<Booked>(
    `SELECT count(lease_id)::int AS leases,
       bool_and((SELECT coalesce(sum(1::bigint << slot), 0) = slots_used FROM lease, generate_series(slot_start, slot_start + slot_size - 1) slot WHERE lease.gpu_id = gpu.gpu_id)
         AND (SELECT coalesce(sum(1::bigint << turn), 0) = turns_used FROM lease WHERE lease.gpu_id = gpu.gpu_id AND turn IS NOT NULL)) AS "isCounted",
       (SELECT coalesce(sum(vgpus), 0)::int FROM subscription WHERE pool_id = $1 AND state NOT IN ('unsubscribed', 'failed')) AS vgpus
     FROM gpu LEFT JOIN lease USING (gpu_id) WHERE pool_id = $1`,
    [poolId],
  );
  return row;
}

describe('subscribing by fifty at once', () => {
  it('takes exactly the slices there are; who comes too late is told that nothing would fit', async () => {
    const { pool_id, pool_name } = await fixture.pool({ profiles: ['1g.10gb', '2g.20gb'] }, { count: 2 });
    const { accepted, refused } = await all(Array.from({ length: callers }, () => ask({ pool_id })));
    expect(accepted).toBe(14);
    for (const { code, message } of refused) {
      expect(code).toBe('insufficient_capacity');
      expect(message).toBe(`Pool ${pool_name} has no capacity for 1 vGPU of 1g.10gb. Available: nothing.`);
    }
    expect(await booked(pool_id)).toEqual({ leases: 14, isCounted: true, vgpus: 14 });
  });

  it('of several slices each gives all that was asked for or nothing, and tells who is refused what would fit', async () => {
    const { pool_id, pool_name } = await fixture.pool({ profiles: ['1g.10gb'] });
    const { accepted, refused } = await all(Array.from({ length: callers }, () => ask({ pool_id, vgpus: 3 })));
    expect(accepted).toBe(2);
    expect(refused[0]?.message).toBe(
      `Pool ${pool_name} has no capacity for 3 vGPUs of 1g.10gb. Available: 1 of 1g.10gb.`,
    );
    expect(await booked(pool_id)).toEqual({ leases: 6, isCounted: true, vgpus: 6 });
    expect((await ask({ pool_id })).status).toBe('subscribing');
  });

  it('of an entitlement sells slices × overcommit, and leases nothing', async () => {
    const { pool_id, pool_name } = await fixture.pool({ mechanism: 'mps', replicas: 3, overcommit: 4 });
    const { accepted, refused } = await all(Array.from({ length: callers }, () => ask({ pool_id })));
    expect(accepted).toBe(12);
    expect(refused[0]?.message).toBe(`Pool ${pool_name} has no capacity for 1 vGPU of mps-3. Available: nothing.`);
    expect(await booked(pool_id)).toEqual({ leases: 0, isCounted: true, vgpus: 12 });
  });

  it('and leaving by half of them at once loses no slice', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40 });
    const held = await Promise.all(Array.from({ length: 25 }, () => ask({ pool_id })));
    await fixture.settle();
    const leaving = all(held.map((each) => fixture.unsubscribe(team, each)));
    const coming = all(Array.from({ length: 15 }, () => ask({ pool_id })));
    expect([(await leaving).accepted, (await coming).accepted]).toEqual([25, 15]);
    await fixture.settle();
    expect(await booked(pool_id)).toEqual({ leases: 15, isCounted: true, vgpus: 15 });
    await ask({ pool_id, vgpus: 25 });
    expect((await errorOf(ask({ pool_id }))).code).toBe('insufficient_capacity');
  });
});

describe('a refusal for want of room', () => {
  it('names how many of each profile would fit instead, and writes nothing', async () => {
    const { pool_id, pool_name } = await fixture.pool({ profiles: ['1g.10gb', '3g.40gb', '7g.80gb'] });
    await ask({ pool_id, profile: '3g.40gb' });
    const { code, message } = await errorOf(ask({ pool_id, profile: '7g.80gb' }));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool_name} has no capacity for 1 vGPU of 7g.80gb. Available: 4 of 1g.10gb, or 1 of 3g.40gb.`,
    ]);
    expect(await booked(pool_id)).toEqual({ leases: 1, isCounted: true, vgpus: 1 });
  });

  it('tells the truth: what it says would fit does', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb', '2g.20gb', '3g.40gb'] }, { count: 2 });
    await ask({ pool_id, profile: '2g.20gb', vgpus: 2 });
    const { message } = await errorOf(ask({ pool_id, profile: '3g.40gb', vgpus: 9 }));
    const [, count, profile] = /(\d+) of (3g\.40gb)/.exec(message) ?? [];
    expect((await ask({ pool_id, profile: profile ?? '', vgpus: Number(count) })).vgpus_allocated).toBe(Number(count));
    expect((await errorOf(ask({ pool_id, profile: '3g.40gb' }))).code).toBe('insufficient_capacity');
  });

  it('of an entitlement counts the part of a GPU that each profile is', async () => {
    const { pool_id, pool_name } = await fixture.pool({ profiles: ['1g.10gb', '3g.40gb'], overcommit: 2 });
    await ask({ pool_id, profile: '3g.40gb', vgpus: 2 });
    const { message } = await errorOf(ask({ pool_id, profile: '3g.40gb', vgpus: 3 }));
    expect(message).toBe(
      `Pool ${pool_name} has no capacity for 3 vGPUs of 3g.40gb. Available: 7 of 1g.10gb, or 2 of 3g.40gb.`,
    );
    await ask({ pool_id, profile: '1g.10gb', vgpus: 7 });
    expect((await errorOf(ask({ pool_id }))).message).toContain('Available: nothing.');
  });
});

describe('a subscription', () => {
  it('is, unless said otherwise, of the smallest profile and in the team’s default workspace', async () => {
    const { pool_id, pool_name, gpuaas_id } = await fixture.pool({ profiles: ['7g.80gb', '2g.20gb'] });
    expect(await ask({ pool_id })).toEqual({
      subscription_id: expect.stringMatching(/^\d+$/),
      team_id: team.team_id,
      workspace_id: team.workspace_id,
      name: null,
      pool_id,
      pool_name,
      gpuaas_id,
      region_id: expect.stringMatching(/^\d+$/),
      status: 'subscribing',
      reason: null,
      profile: '2g.20gb',
      v_ram_gb: 20,
      vgpus_allocated: 1,
      resize: null,
      created_at: expect.stringMatching(/\.\d{3}Z$/),
    });
  });

  it('of one Idempotency-Key is one, also when it is asked for many times at once', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const key = { key: newId(), fingerprint: 'body' };
    const again = () =>
      fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 2 }, team.member, key);
    const { accepted, refused } = await all(Array.from({ length: 10 }, again));
    expect(accepted).toBeGreaterThan(0);
    expect(refused.every(({ code }) => code === 'conflict')).toBe(true);
    expect(await again()).toEqual(await again());
    expect(await booked(pool_id)).toEqual({ leases: 2, isCounted: true, vgpus: 2 });
  });

  it('that was refused may be asked for again by its key once there is room', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['7g.80gb'] });
    const first = await ask({ pool_id });
    const key = { key: newId(), fingerprint: 'body' };
    const again = () =>
      fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 1 }, team.member, key);
    expect((await errorOf(again())).code).toBe('insufficient_capacity');
    await fixture.unsubscribe(team, first);
    await fixture.settle();
    expect((await again()).status).toBe('subscribing');
  });

  it('by a key that came with another body is refused', async () => {
    const { pool_id } = await fixture.pool();
    const by = (fingerprint: string) =>
      fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 1 }, team.member, {
        key: pool_id,
        fingerprint,
      });
    await by('one');
    expect((await errorOf(by('another'))).code).toBe('idempotency_mismatch');
  });

  it('of a profile that the pool does not sell is refused by name, with those that it does', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb', '2g.20gb'] });
    for (const profile of ['3g.40gb', 'mps-4', '1G.10GB']) {
      const { code, details, message } = await errorOf(ask({ pool_id, profile }));
      expect([code, details.errors?.[0]?.path, message]).toEqual([
        'invalid_input',
        'profile',
        'profile must be a profile that the pool sells: 1g.10gb, 2g.20gb.',
      ]);
    }
  });

  it.each([0, -1, 1.5, 1_000_000_000, Number.NaN])('of %d vGPUs is refused, and nothing is written', async (vgpus) => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 2 });
    const { code, details } = await errorOf(ask({ pool_id, vgpus }));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'vgpus']);
    expect(await booked(pool_id)).toEqual({ leases: 0, isCounted: true, vgpus: 0 });
  });
});

describe('who may subscribe', () => {
  let pool_id: string;
  beforeAll(async () => {
    ({ pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 }));
  });

  it('nobody in a workspace of another team, or in one that there is not', async () => {
    const other = await fixture.team();
    const foreign = await errorOf(ask({ pool_id, workspace_id: other.workspace_id }));
    const unknown = await errorOf(ask({ pool_id, workspace_id: newId() }));
    expect([foreign.code, unknown.code, foreign.message]).toEqual(['not_found', 'not_found', unknown.message]);
  });

  it('nobody in a pool that there is not', async () => {
    expect((await errorOf(ask({ pool_id: '999999999' }))).code).toBe('not_found');
    expect((await errorOf(ask({ pool_id: '99999999999999999999' }))).code).toBe('invalid_input');
    expect((await errorOf(ask({ pool_id: newId() }))).code).toBe('invalid_input');
  });

  it('nobody of a team that is suspended, being deleted or gone; the operator where it is only suspended', async () => {
    const told = await fixture.team();
    const team = { team_id: told.team_id, name: 'Research', workspaces: [{ id: told.workspace_id, name: 'default' }] };
    await fixture.tell(teamChanged, { ...team, revision: 2, is_suspended: true, status: 'active' });
    expect((await errorOf(fixture.subscribe(told, { pool_id }))).code).toBe('team_suspended');
    expect((await fixture.call(subscriptions.subscribe, { team_id: told.team_id, pool_id, vgpus: 1 })).status).toBe(
      'subscribing',
    );
    await fixture.tell(teamChanged, { ...team, revision: 3, is_suspended: false, status: 'deleting' });
    expect((await errorOf(fixture.subscribe(told, { pool_id }))).code).toBe('conflict');
    await fixture.tell(teamChanged, { ...team, revision: 4, is_suspended: false, status: 'deleted' });
    expect((await errorOf(fixture.subscribe(told, { pool_id }))).code).toBe('not_found');
  });

  it('nobody in a workspace that was deleted', async () => {
    const told = await fixture.team();
    const team = { team_id: told.team_id, name: 'Research', is_suspended: false, status: 'active' as const };
    const [first, second] = [
      { id: told.workspace_id, name: 'default' },
      { id: newId(), name: 'second' },
    ];
    await fixture.tell(teamChanged, { ...team, revision: 2, workspaces: [first, second] });
    expect((await fixture.subscribe(told, { pool_id, workspace_id: second.id })).workspace_id).toBe(second.id);
    await fixture.tell(teamChanged, { ...team, revision: 3, workspaces: [first] });
    expect((await errorOf(fixture.subscribe(told, { pool_id, workspace_id: second.id }))).code).toBe('not_found');
  });
});
