import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Pool, Subscription } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { DataSource, type EntityManager } from 'typeorm';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { requestOf, wakeQueue } from './waiting-requests.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let pool: Pool & Inventory;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
  pool = await fixture.pool({ mechanism: 'mps', replicas: 3 });
});
afterEach(() => fixture.query('DELETE FROM waiting_request'));
afterAll(() => fixture.stop());

const subscribe = () => fixture.subscribe(team, { pool_id: pool.pool_id });
const queue = ({ subscription_id }: Subscription, refusal: string | null) =>
  fixture.query(
    `INSERT INTO waiting_request (pool_id, team_id, subscription_id, profile, vgpus, refusal) VALUES ($1, $2, $3, 'whole', 1, $4)`,
    [pool.pool_id, team.team_id, subscription_id, refusal],
  );
const isFirst = async ({ subscription_id }: Subscription) =>
  (await requestOf(fixture.get(Statements), 'subscription', subscription_id))?.isFirst;

it('a request is the first of its pool behind those that are refused, and not behind one that waits', async () => {
  const [refused, first, second] = [await subscribe(), await subscribe(), await subscribe()];
  await queue(refused, 'The GPU is lost.');
  await queue(first, null);
  await queue(second, null);
  expect([await isFirst(first), await isFirst(second)]).toEqual([true, false]);
});

/** More than PostgreSQL would read all of rather than use an index. */
const many = 5_000;

/** How many rows of requests that wait are read by plans that are made for any pool, as those of most calls are. */
const readBy = (work: (manager: EntityManager) => Promise<unknown>) =>
  fixture.get(DataSource).transaction(async (manager) => {
    const read = async () => {
      const [row] = await manager.query<[{ rows: number }]>(
        `SELECT (seq_tup_read + idx_tup_fetch)::float8 AS rows FROM pg_stat_xact_user_tables WHERE relname = 'waiting_request'`,
      );
      return row.rows;
    };
    await manager.query('SET LOCAL plan_cache_mode = force_generic_plan');
    const before = await read();
    await work(manager);
    return (await read()) - before;
  });

it('requests that wait for one pool are not read by what is done with another, however many they are', async () => {
  await fixture.query(
    `WITH made AS (
       INSERT INTO subscription (team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, state)
       SELECT $1, $1, $2, 'mps-3', 20, 1, 'active' FROM generate_series(1, ${many}) RETURNING subscription_id
     )
     INSERT INTO waiting_request (pool_id, team_id, subscription_id, profile, vgpus) SELECT $2, $1, subscription_id, 'mps-3', 1 FROM made`,
    [team.team_id, pool.pool_id],
  );
  await fixture.query('VACUUM (ANALYZE) waiting_request');
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 3 });
  let own: Subscription | undefined;
  const sent = await statementsOf(async () => (own = await fixture.subscribe(team, { pool_id })));
  const looks = sent.filter(({ text }) => text.includes('has_queue'));
  expect(looks).toHaveLength(1);
  expect(await readBy((manager) => manager.query(looks[0]?.text ?? '', looks[0]?.values))).toBe(0);
  expect(await readBy((manager) => wakeQueue(manager, pool_id))).toBe(0);
  const id = own?.subscription_id ?? '';
  await fixture.query(
    `INSERT INTO waiting_request (pool_id, team_id, subscription_id, profile, vgpus) VALUES ($1, $2, $3, 'mps-3', 1)`,
    [pool_id, team.team_id, id],
  );
  // It, and the first of its pool.
  expect(await readBy((manager) => requestOf(manager, 'subscription', id))).toBe(2);
});
