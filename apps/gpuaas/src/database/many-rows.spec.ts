import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { gpuaasBatches, nodes, pools, subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { allStatementsDuring, mostRowsRead, statementsOf } from '@atoll/testing';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

/** More than PostgreSQL would read all of rather than use an index. */
const ended = 5_000;

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const ours = /\b(gpu|node|pool|subscription|workload|lease|price|machine_history)\b/;
/** Of the catalogue of pools, which forgets all whenever the service opens a connection. */
const forgotten = /\bFROM pool JOIN gpuaas USING \(gpuaas_id\) WHERE pool_id = ANY\b/;
const countOf = async (work: () => Promise<unknown>) => (await countedOf(work))[1];
/** What `work` returns, and the number of its statements. */
async function countedOf<T>(work: () => Promise<T>): Promise<[T, number]> {
  let done: Promise<T> | undefined;
  const sent = await statementsOf(() => (done = work()));
  return [await (done as Promise<T>), sent.filter(({ text }) => ours.test(text) && !forgotten.test(text)).length];
}

describe('the number of statements', () => {
  it('of the offers of many pools is that of the offers of two', async () => {
    const offersOf = (gpuaas_id: string) => () =>
      fixture.call(pools.available, { team_id: team.team_id, gpuaas_id, limit: 100 }, team.member);
    const counts: number[] = [];
    for (const gpus of [2, 14]) {
      const inventory = await fixture.inventory('A100-80GB', gpus);
      for (const [at, id] of inventory.gpu_ids.entries()) {
        await fixture.poolOn(inventory, [id], { mechanism: 'mps', replicas: 2, overcommit: 1 + (at % 2) });
      }
      // What is read once and kept.
      await offersOf(inventory.gpuaas_id)();
      counts.push(await countOf(offersOf(inventory.gpuaas_id)));
    }
    expect(counts[1]).toBe(counts[0]);
  });

  it('of creating a pool is the same for one GPU and for many', async () => {
    const counts: number[] = [];
    for (const count of [1, 16]) {
      const inventory = await fixture.inventory('A100-80GB', count);
      counts.push(await countOf(() => fixture.poolOn(inventory, inventory.gpu_ids)));
    }
    expect(counts[1]).toBe(counts[0]);
  });

  it('of a subscription for which GPUs fall back, and of a resize after which they return, is the same for few and for many', async () => {
    const counts: number[][] = [];
    for (const count of [2, 12]) {
      const terms = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 } as const;
      const { pool_id } = await fixture.pool(terms, { count });
      // As after different numbers of switches.
      await fixture.query('UPDATE gpu SET generation = 2 * gpu_id WHERE pool_id = $1', [pool_id]);
      const switching = async () => {
        const [row] = await fixture.query<{ states: string[] }>(
          `SELECT array_agg(state ORDER BY state) AS states FROM gpu WHERE pool_id = $1 AND starts_with(state, 'to_')`,
          [pool_id],
        );
        return row?.states;
      };
      await fixture.subscribe(team, { pool_id, vgpus: 2 * count });
      const [held, ofSubscribing] = await countedOf(() => fixture.subscribe(team, { pool_id, vgpus: 2 * count }));
      expect(await switching()).toEqual(Array.from({ length: count }, () => 'to_temporal'));
      await fixture.settle();
      const { subscription_id } = held;
      const [, ofResizing] = await countedOf(() =>
        fixture.call(subscriptions.resize, { subscription_id, vgpus: 1 }, team.member),
      );
      expect(await switching()).toEqual(Array.from({ length: count - 1 }, () => 'to_spatial'));
      counts.push([ofSubscribing, ofResizing]);
    }
    expect(counts[1]).toEqual(counts[0]);
  });

  it('of listing subscriptions, of unsubscribing and of occupying a node is the same for one and for many', async () => {
    const counts: number[][] = [];
    for (const many of [1, 9]) {
      const pool = await fixture.pool({ mechanism: 'mps', replicas: 16 });
      const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: many });
      await fixture.settle();
      for (let count = 0; count < many; count += 1) await fixture.start(team, held);
      await fixture.settle();
      counts.push([
        await countOf(() => fixture.call(subscriptions.list, { team_id: team.team_id })),
        await countOf(() => fixture.unsubscribe(team, held, true)),
      ]);
    }
    expect(counts[1]).toEqual(counts[0]);
  });
});

describe('what has ended', () => {
  it('is not read by anything that is asked about live rows', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 4 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
    await fixture.settle();
    await fixture.start(team, held);
    await fixture.settle();
    await fixture.query(
      `INSERT INTO workload (subscription_id, team_id, name, vgpus, state) SELECT $1, $2, 'ended', 1, 'stopped' FROM generate_series(1, $3)`,
      [held.subscription_id, team.team_id, ended],
    );
    await fixture.query(
      `INSERT INTO subscription (team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, state)
       SELECT $1, $1, $2, 'mps-2', 40, 1, 'unsubscribed' FROM generate_series(1, $3)`,
      [team.team_id, pool.pool_id, ended],
    );
    for (const table of ['workload', 'subscription']) await fixture.query(`VACUUM (ANALYZE) ${table}`);
    const { team_id, member } = team;
    const sent = await allStatementsDuring(async () => {
      await fixture.call(workloads.list, { team_id }, member);
      await fixture.call(workloads.list, { team_id, subscription_id: held.subscription_id }, member);
      await fixture.call(subscriptions.list, { team_id }, member);
      await fixture.call(subscriptions.list, { team_id, gpuaas_id: pool.gpuaas_id }, member);
      await fixture.call(gpuaasBatches.subscriptions, { team_id, subscription_ids: [held.subscription_id] }, member);
      await fixture.call(subscriptions.listAll, {});
      await fixture.call(pools.available, { team_id, gpuaas_id: pool.gpuaas_id }, member);
      await fixture.stopWorkload(team, await fixture.start(team, held));
      const more = await fixture.subscribe(team, { pool_id: pool.pool_id, name: newId() });
      await fixture.settle();
      await fixture.unsubscribe(team, more);
      await fixture.settle();
    });
    // Without those by which the fixture finds out what is on its way.
    const asked = sent.filter(({ text }) => !/\b(transient|passes)\b/.test(text));
    const reads = asked.filter(
      ({ text }) => /^\s*SELECT/.test(text) && /\b(FROM|JOIN) (subscription|workload)\b/.test(text),
    );
    expect(reads.length).toBeGreaterThan(10);
    const most = await Promise.all(reads.map((read) => mostRowsRead(fixture, read)));
    expect(reads.filter((_, at) => (most[at] ?? 0) >= ended)).toEqual([]);
  });

  it('is not read by the list of nodes, however many leases their GPUs have', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
    await fixture.query(
      `WITH made AS (
         INSERT INTO subscription (team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, state)
         SELECT $1, $1, $2, 'mps-2', 40, 1, CASE WHEN number <= 1000 THEN 'active' ELSE 'unsubscribed' END FROM generate_series(1, $3 + 1000) number
         RETURNING subscription_id, state
       ), started AS (
         INSERT INTO workload (subscription_id, team_id, name, vgpus, state)
         SELECT subscription_id, $1, 'one', 1, CASE state WHEN 'active' THEN 'running' ELSE 'stopped' END FROM made
         RETURNING subscription_id, workload_id, state
       )
       INSERT INTO lease (gpu_id, subscription_id, workload_id, profile, slot_size, turn)
       SELECT $4, subscription_id, workload_id, 'mps-2', 1, row_number() OVER () FROM started WHERE state = 'running'`,
      [team.team_id, pool.pool_id, ended, pool.gpu_ids[0]],
    );
    for (const table of ['workload', 'subscription', 'lease']) await fixture.query(`VACUUM (ANALYZE) ${table}`);
    const sent = await statementsOf(() => fixture.call(nodes.list, { gpuaas_id: pool.gpuaas_id }));
    const reads = sent.filter(({ text }) => /\bFROM lease\b/.test(text));
    expect(reads).toHaveLength(1);
    for (const read of reads) expect(await mostRowsRead(fixture, read)).toBeLessThan(ended);
  });
});
