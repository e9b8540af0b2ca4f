import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Pool, Subscription } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { requestOf } from './waiting-requests.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let pool: Pool & Inventory;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
  pool = await fixture.pool({ mechanism: 'mps', replicas: 3 });
});
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
