import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** More than the service has connections. */
const callers = 60;

it('while many subscriptions under idempotency keys wait for one pool, calls of others are answered; then all are made, once each', async () => {
  const [team, other] = [await fixture.team(), await fixture.team()];
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40, sharing_mode: 'Spatial' }, { count: 2 });
  const ask = (caller: number) =>
    fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 1 }, team.member, {
      key: `key ${caller}`,
      fingerprint: 'f',
    });
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.connect();
  await holder.startTransaction();
  await holder.query('SELECT FROM pool WHERE pool_id = $1 FOR UPDATE', [pool_id]);
  const asked = Array.from({ length: callers }, (_, caller) => ask(caller));
  try {
    expect((await fixture.call(subscriptions.list, { team_id: other.team_id }, other.member)).data).toEqual([]);
    const waiting = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const [row] = await fixture.query<{ count: number }>(waiting);
    expect(row?.count).toBeLessThanOrEqual(1);
  } finally {
    await holder.commitTransaction();
    await holder.release();
  }
  const made = await Promise.all(asked);
  expect(new Set(made.map(({ subscription_id }) => subscription_id)).size).toBe(callers);
  expect(await Promise.all(Array.from({ length: callers }, (_, caller) => ask(caller)))).toEqual(made);
});
