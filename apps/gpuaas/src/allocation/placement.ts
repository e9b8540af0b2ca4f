import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { GpuEntity } from '../model/gpu.entity.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { recount, type HeldFilter } from '../sharing/lease-store.js';
import { wakeQueue } from '../sharing/waiting-requests.js';

/**
 * Which leases are given back: with `idle` so many on which nothing runs, with `isAdded` those by which a subscription
 * was to grow.
 */
export interface Released extends HeldFilter {
  readonly idle?: number;
}

/** Leases that are given back, and in the same transaction what that does to the modes of their GPUs. */
@Injectable()
export class Placement {
  constructor(private readonly gpus: GpuSteps) {}

  /**
   * Gives back leases of a subscription, or of a workload its own; what still runs may return to Spatial, and those
   * that wait for the pool look for room. The subscription's, or the workload's, row is locked by the transaction.
   */
  async release(manager: EntityManager, { of, ids, isAdded = false, idle }: Released, cause: Cause): Promise<void> {
    // Chosen once: a look after the wait for the GPUs could see others.
    const chosen = await manager.query<{ lease_id: string; gpu_id: string }[]>(
      `SELECT lease_id, gpu_id FROM lease
       WHERE ${of} = ANY ($1::bigint[]) ${idle === undefined ? '' : 'AND workload_id IS NULL'} ${isAdded ? 'AND is_added' : ''} ORDER BY lease_id DESC LIMIT $2`,
      [ids, idle ?? null],
    );
    if (chosen.length === 0) return;
    const gpus = await this.lock(
      manager,
      chosen.map(({ gpu_id }) => gpu_id),
    );
    await manager.query('DELETE FROM lease WHERE lease_id = ANY ($1::bigint[])', [chosen.map(({ lease_id }) => lease_id)]);
    await recount(
      manager,
      gpus.map(({ gpuId }) => gpuId),
    );
    // A GPU that has just failed to return is left alone for a while.
    for (const gpu of gpus) if (gpu.parkedUntil === null) await this.gpus.returnIfFits(manager, gpu, cause);
    for (const poolId of new Set(gpus.flatMap((gpu) => gpu.poolId ?? []))) await wakeQueue(manager, poolId);
  }

  /**
   * Takes the GPUs of what these nodes did not give back out of service: they are initialised before anybody else is
   * placed there.
   */
  async distrust(manager: EntityManager, held: HeldFilter, nodeIds: readonly string[], message: string, cause: Cause): Promise<void> {
    for (const gpu of (await this.lockHeld(manager, held)).filter(({ nodeId }) => nodeIds.includes(nodeId))) {
      await this.gpus.move(manager, gpu, 'GO_OFFLINE', cause, {}, { code: 'not_given_back', message });
    }
  }

  /** Locks the GPUs of what is held, as everybody does: in the order of their ids. */
  async lockHeld(manager: EntityManager, { of, ids, isAdded = false }: HeldFilter): Promise<GpuEntity[]> {
    const held = await manager.query<{ gpu_id: string }[]>(
      `SELECT DISTINCT gpu_id FROM lease WHERE ${of} = ANY ($1::bigint[]) ${isAdded ? 'AND is_added' : ''}`,
      [ids],
    );
    return this.lock(
      manager,
      held.map(({ gpu_id }) => gpu_id),
    );
  }

  private async lock(manager: EntityManager, gpuIds: readonly string[]): Promise<GpuEntity[]> {
    const raw = await manager.query<object[]>('SELECT * FROM gpu WHERE gpu_id = ANY ($1::bigint[]) ORDER BY gpu_id FOR NO KEY UPDATE', [
      gpuIds,
    ]);
    return raw.map((row) => this.gpus.rowOf(row));
  }
}
