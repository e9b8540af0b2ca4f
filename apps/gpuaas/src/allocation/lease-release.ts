import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { GpuEntity } from '../model/gpu.entity.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { recount, whereHeld, type HeldFilter } from '../sharing/lease-store.js';
import { wakeQueue } from '../sharing/waiting-requests.js';

/** A lease that is to be given back, and why. */
export interface Leaving {
  readonly leaseId: string;
  readonly gpuId: string;
  readonly cause: Cause;
}

/** How many leases on which nothing runs a subscription gives back. */
export interface Shrinking {
  readonly subscriptionId: string;
  readonly count: number;
  readonly cause: Cause;
}

/** Leases that are given back, and in the same transaction what that does to the modes of their GPUs. */
@Injectable()
export class LeaseRelease {
  constructor(private readonly gpus: GpuSteps) {}

  /** Gives back what is held. The subscription's, or the workload's, row is locked by the transaction. */
  async releaseHeld(manager: EntityManager, held: HeldFilter, cause: Cause): Promise<void> {
    const leases = await manager.query<{ lease_id: string; gpu_id: string }[]>(
      `SELECT lease_id, gpu_id FROM lease WHERE ${whereHeld(held)}`,
      [held.ids],
    );
    await this.release(
      manager,
      leases.map(({ lease_id, gpu_id }) => ({ leaseId: lease_id, gpuId: gpu_id, cause })),
    );
  }

  /**
   * Those that subscriptions, whose rows are locked by the transaction, give back: chosen once, since a later look
   * could see others.
   */
  async idleLeases(manager: EntityManager, all: readonly Shrinking[]): Promise<Leaving[]> {
    if (all.length === 0) return [];
    const rows = await manager.query<{ lease_id: string; gpu_id: string; subscription_id: string }[]>(
      `SELECT lease_id, gpu_id, subscription_id FROM (
         SELECT lease_id, gpu_id, subscription_id, row_number() OVER (PARTITION BY subscription_id ORDER BY lease_id DESC) AS place
         FROM lease WHERE subscription_id = ANY ($1::bigint[]) AND workload_id IS NULL
       ) idle JOIN unnest($1::bigint[], $2::int[]) shrinking (subscription_id, count) USING (subscription_id) WHERE place <= count`,
      [all.map(({ subscriptionId }) => subscriptionId), all.map(({ count }) => count)],
    );
    const causes = new Map(all.map(({ subscriptionId, cause }) => [subscriptionId, cause]));
    return rows.flatMap(({ lease_id, gpu_id, subscription_id }) => {
      const cause = causes.get(subscription_id);
      return cause ? [{ leaseId: lease_id, gpuId: gpu_id, cause }] : [];
    });
  }

  /** Gives back leases; what still runs may return to Spatial, and those that wait for the pool look for room. */
  async release(manager: EntityManager, leaving: readonly Leaving[]): Promise<void> {
    if (leaving.length === 0) return;
    const gpus = await this.gpus.lockAll(
      manager,
      leaving.map(({ gpuId }) => gpuId),
    );
    await manager.query('DELETE FROM lease WHERE lease_id = ANY ($1::bigint[])', [
      leaving.map(({ leaseId }) => leaseId),
    ]);
    await recount(
      manager,
      gpus.map(({ gpuId }) => gpuId),
    );
    const causes = new Map(leaving.map(({ gpuId, cause }) => [gpuId, cause]));
    // A GPU whose last return failed waits for its retry. One that may not return while it is shared may be empty now.
    const able = gpus.filter(({ parkedUntil, lastError }) => parkedUntil === null || lastError === null);
    for (const [cause, those] of Map.groupBy(able, ({ gpuId }) => causes.get(gpuId))) {
      if (cause) await this.gpus.returnAllThatFit(manager, those, cause);
    }
    for (const poolId of new Set(gpus.flatMap((gpu) => gpu.poolId ?? []))) await wakeQueue(manager, poolId);
  }

  /**
   * Takes GPUs whose leases these nodes did not release out of service: they are initialised before anybody else is
   * placed there.
   */
  async takeOffline(
    manager: EntityManager,
    held: HeldFilter,
    nodeIds: readonly string[],
    message: string,
    cause: Cause,
  ): Promise<void> {
    for (const gpu of (await this.lockHeld(manager, held)).filter(({ nodeId }) => nodeIds.includes(nodeId))) {
      await this.gpus.move(manager, gpu, 'GO_OFFLINE', cause, {}, { code: 'not_given_back', message });
    }
  }

  /** Locks the GPUs of what is held, as everybody does: in the order of their ids. */
  async lockHeld(manager: EntityManager, held: HeldFilter): Promise<GpuEntity[]> {
    const gpus = await manager.query<{ gpu_id: string }[]>(
      `SELECT DISTINCT gpu_id FROM lease WHERE ${whereHeld(held)}`,
      [held.ids],
    );
    return this.gpus.lockAll(
      manager,
      gpus.map(({ gpu_id }) => gpu_id),
    );
  }
}
