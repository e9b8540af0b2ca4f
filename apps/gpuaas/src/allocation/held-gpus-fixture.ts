import { untilLockWaits } from '@atoll/testing';
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
  let working: Promise<unknown> = Promise.resolve();
  try {
    await holder.startTransaction();
    await holder.query('SELECT FROM gpu ORDER BY gpu_id FOR NO KEY UPDATE');
    working = work();
    await untilLockWaits(fixture, { unless: working });
    await meanwhile();
  } finally {
    if (holder.isTransactionActive) await holder.commitTransaction();
    await holder.release();
  }
  await working;
}
