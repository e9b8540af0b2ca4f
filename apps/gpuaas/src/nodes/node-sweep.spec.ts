import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { sweeps } from './node-steps.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const inService = ['ready', 'cordoned'];
const waiting = () =>
  fixture.query(`SELECT FROM node WHERE state = ANY ($1) AND (due_at IS NOT NULL OR parked_until IS NOT NULL)`, [
    inService,
  ]);

describe('a node in service', () => {
  it('waits for no worker, and none looks at it', async () => {
    await fixture.pool();
    expect(await waiting()).toEqual([]);
    const before = await fixture.query('SELECT xmin, revision FROM node ORDER BY node_id');
    await fixture.pass(3_600);
    await fixture.work();
    expect(await fixture.query('SELECT xmin, revision FROM node ORDER BY node_id')).toEqual(before);
  });

  it('that lost a GPU while its own row was locked is found by a sweep', async () => {
    const pool = await fixture.pool();
    const [gpus, transactions] = [fixture.get(GpuSteps), fixture.get(Transactions)];
    const cause = { actor: 'system:specs' };
    await transactions.run(async (manager) => {
      await manager.query('SELECT FROM node WHERE node_id = $1 FOR NO KEY UPDATE', [pool.node_id]);
      const lost = { code: 'lost', message: 'It fell off the bus.' };
      await transactions.run(async (other) => {
        const gpu = await gpus.lock(other, pool.gpu_ids[0] ?? '');
        if (gpu) await gpus.move(other, gpu, 'GO_OFFLINE', cause, {}, lost);
      });
    });
    expect(await waiting()).toEqual([]);
    await fixture.work();
    expect(await fixture.node(pool.node_id)).toMatchObject({ status: 'init_failed' });
    expect((await fixture.node(pool.node_id)).reason).toContain('It fell off the bus.');
  });

  it('has its failures forgotten once all of its GPUs are in service again', async () => {
    const pool = await fixture.pool();
    const failures = async () =>
      (await fixture.query<{ failures: number }>('SELECT failures FROM node WHERE node_id = $1', [pool.node_id]))[0]
        ?.failures;
    const isIn = (state: string) =>
      fixture.query('UPDATE gpu SET state = $2 WHERE gpu_id = $1', [pool.gpu_ids[0], state]);
    await fixture.query('UPDATE node SET failures = 3 WHERE node_id = $1', [pool.node_id]);
    const [before] = await fixture.query<{ state: string }>('SELECT state FROM gpu WHERE gpu_id = $1', [
      pool.gpu_ids[0],
    ]);
    for (const state of ['preparing', 'offline']) {
      await isIn(state);
      await fixture.query(sweeps.forget);
      expect([state, await failures()]).toEqual([state, 3]);
    }
    await isIn(before!.state);
    await fixture.work();
    expect(await failures()).toBe(0);
  });
});

it('a sweep reads no node that is well, of however many', async () => {
  const { gpuaas_id, node_id, pool_id } = await fixture.pool();
  await fixture.query(
    `INSERT INTO node (gpuaas_id, node_name, state) SELECT $1, 'well-' || n, CASE n % 2 WHEN 0 THEN 'ready' ELSE 'cordoned' END
     FROM generate_series(1, 1000) n`,
    [gpuaas_id],
  );
  for (let at = 1; at <= 5; at += 1) {
    await fixture.query(
      `INSERT INTO gpu (node_id, uuid, board, pool_id, state)
       SELECT node_id, 'GPU-' || node_id || '-' || $2::int, 'A100-80GB', $1, 'spatial' FROM node WHERE node_name LIKE 'well-%'`,
      [pool_id, at],
    );
  }
  await fixture.query(`UPDATE gpu SET state = 'offline' WHERE node_id = $1`, [node_id]);
  for (const statistics of ['', 'ANALYZE node, gpu']) {
    if (statistics) await fixture.query(statistics);
    for (const sql of Object.values(sweeps)) {
      const runner = fixture.get(DataSource).createQueryRunner();
      await runner.startTransaction();
      const lines = (await runner.query(`EXPLAIN (ANALYZE, TIMING OFF) ${sql}`)) as { 'QUERY PLAN': string }[];
      await runner.rollbackTransaction();
      await runner.release();
      const plan = lines.map((line) => line['QUERY PLAN']).join('\n');
      expect(plan).not.toMatch(/Seq Scan/);
      for (const [, rows] of plan.matchAll(/Scan .*actual rows=([\d.]+)/g))
        expect(Number(rows)).toBeLessThanOrEqual(10);
    }
  }
});
