import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import type { GpuaasFixture } from '../gpuaas-fixture.js';

/**
 * Has something done while other work stands still at a GPU that it is about to lock, if it comes to lock any; then
 * lets it go on to its end.
 */
export async function betweenLookAndWriting(
  fixture: GpuaasFixture,
  work: () => Promise<unknown>,
  meanwhile: () => Promise<unknown>,
) {
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.connect();
  const working = { isOver: false, end: Promise.resolve() };
  try {
    await holder.startTransaction();
    await holder.query('SELECT FROM gpu ORDER BY gpu_id FOR NO KEY UPDATE');
    working.end = work()
      .then(() => undefined)
      .finally(() => (working.isOver = true));
    while (!working.isOver && !(await isWaitedFor(fixture))) await delay(10);
    await meanwhile();
  } finally {
    if (holder.isTransactionActive) await holder.commitTransaction();
    await holder.release();
  }
  await working.end;
}

async function isWaitedFor(fixture: GpuaasFixture): Promise<boolean> {
  const sql = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await fixture.query(sql)).length > 0;
}
