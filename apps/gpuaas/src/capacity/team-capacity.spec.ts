import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import type { TeamCapacityChanged } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { inTransactionBeside } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { TeamCapacity } from './team-capacity.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const toldOf = ({ team_id }: ToldTeam) =>
  fixture.events
    .filter(({ name }) => name === 'gpuaas.team_capacity_changed')
    .map(({ payload }) => payload as TeamCapacityChanged)
    .filter((told) => told.team_id === team_id);

/** All that was told of a team, once there is nothing left to tell. */
async function toldInTheEnd(of: ToldTeam): Promise<TeamCapacityChanged[]> {
  for (;;) {
    const [state] = await fixture.query<{ isNoted: boolean; revision: string | null }>(
      `SELECT EXISTS (SELECT FROM capacity_change WHERE team_id = $1) AS "isNoted", (SELECT revision FROM team_capacity WHERE team_id = $1) AS revision`,
      [of.team_id],
    );
    const revisions = toldOf(of).map(({ revision }) => revision);
    if (!state?.isNoted && Math.max(0, ...revisions) === Number(state?.revision ?? 0)) return toldOf(of);
    await delay(10);
  }
}

/** What was told last, without its number. */
async function holding(of = team): Promise<Omit<TeamCapacityChanged, 'team_id' | 'revision'> | undefined> {
  const last = (await toldInTheEnd(of)).toSorted((one, other) => one.revision - other.revision).at(-1);
  return last && { gpu_ids: last.gpu_ids, has_pool_subscription: last.has_pool_subscription };
}

describe('what a team holds', () => {
  it('is told from acceptance to the end: the GPUs of its subscriptions, each once', async () => {
    const pool = await fixture.pool({ profiles: ['3g.40gb'] }, { count: 2 });
    const gpuIds = pool.gpu_ids.map(Number);
    expect(await toldInTheEnd(team)).toEqual([]);
    const three = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
    expect(await holding()).toEqual({ gpu_ids: gpuIds, has_pool_subscription: true });
    await fixture.settle();
    expect(await holding()).toEqual({ gpu_ids: gpuIds, has_pool_subscription: true });
    await fixture.unsubscribe(team, three);
    expect(await holding()).toEqual({ gpu_ids: gpuIds, has_pool_subscription: true });
    await fixture.settle();
    expect(await holding()).toEqual({ gpu_ids: [], has_pool_subscription: false });
  });

  it('is, with overcommit, a subscription without GPUs, until a workload runs', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
    await fixture.settle();
    expect(await holding()).toEqual({ gpu_ids: [], has_pool_subscription: true });
    const job = await fixture.start(team, held);
    expect(await holding()).toEqual({ gpu_ids: pool.gpu_ids.map(Number), has_pool_subscription: true });
    await fixture.stopWorkload(team, job);
    await fixture.settle();
    expect(await holding()).toEqual({ gpu_ids: [], has_pool_subscription: true });
  });

  it('is not what was lost', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.query(
      `UPDATE lease SET slot_start = NULL, turn = NULL, lost_reason = 'The GPU was lost.' WHERE subscription_id = $1`,
      [subscription_id],
    );
    await fixture.get(Transactions).run((manager) => fixture.get(TeamCapacity).note(manager, [team.team_id]));
    expect(await holding()).toEqual({ gpu_ids: [], has_pool_subscription: true });
  });

  it('is not what another team holds', async () => {
    const other = await fixture.team();
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
    await fixture.subscribe(team, { pool_id: pool.pool_id });
    expect([await holding(), await holding(other)]).toEqual([
      { gpu_ids: pool.gpu_ids.map(Number), has_pool_subscription: true },
      undefined,
    ]);
  });

  it('is told once for all changes that were noted, however many', async () => {
    const other = await fixture.team();
    await fixture.get(Transactions).run(async (manager) => {
      for (let count = 0; count < 50; count += 1) {
        await fixture.get(TeamCapacity).note(manager, [team.team_id]);
        await fixture.get(TeamCapacity).note(manager, [other.team_id]);
      }
    });
    for (const each of [team, other]) {
      expect(await toldInTheEnd(each)).toEqual([
        { team_id: each.team_id, revision: 1, gpu_ids: [], has_pool_subscription: false },
      ]);
    }
  });

  it('is not told of a change that was not made', async () => {
    const failing = fixture.get(Transactions).run(async (manager) => {
      await fixture.get(TeamCapacity).note(manager, [team.team_id]);
      throw new Error('It was not made.');
    });
    await expect(failing).rejects.toThrow('It was not made.');
    await fixture.get(TeamCapacity).tell();
    expect(await toldInTheEnd(team)).toEqual([]);
  });

  it('is told by one process at a time: the others leave it to that one', async () => {
    await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query(`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' team capacity', 0))`);
      await fixture.get(Transactions).run((manager) => fixture.get(TeamCapacity).note(manager, [team.team_id]));
      expect(await fixture.get(TeamCapacity).tell()).toBe(0);
      const noted = 'SELECT FROM capacity_change WHERE team_id = $1';
      expect(await fixture.query(noted, [team.team_id])).toHaveLength(1);
    });
    expect(await toldInTheEnd(team)).toHaveLength(1);
  });

  it('is told in the order of its revisions, none left out and none twice, whoever tells; the last is the truth', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'] }, { count: 6 });
    const tellers = Array.from({ length: 30 }, () => fixture.get(TeamCapacity).tell());
    const held = await Promise.all(Array.from({ length: 6 }, () => fixture.subscribe(team, { pool_id: pool.pool_id })));
    for (const each of held.slice(0, 4)) {
      await fixture.unsubscribe(team, each);
      await fixture.work();
      tellers.push(fixture.get(TeamCapacity).tell(), fixture.get(TeamCapacity).tell());
    }
    await fixture.settle();
    await Promise.all(tellers);
    const revisions = (await toldInTheEnd(team)).map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.map((_, at) => at + 1));
    const rest = await fixture.query<{ id: number }>(
      'SELECT gpu_id::int AS id FROM lease WHERE subscription_id = ANY ($1::bigint[]) ORDER BY 1',
      [held.map(({ subscription_id }) => subscription_id)],
    );
    expect([rest.length, await holding()]).toEqual([
      2,
      { gpu_ids: rest.map(({ id }) => id), has_pool_subscription: true },
    ]);
  });
});
