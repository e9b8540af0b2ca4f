import type { Gpu } from '@atoll/contracts/gpuaas';
import { Injectable } from '@nestjs/common';
import { DataSource, In, type EntityManager } from 'typeorm';
import { PoolEntity } from '../model/pool.entity.js';
import type { GpuEntity } from '../model/gpu.entity.js';
import { gpuView, type ShownLease } from './gpu-view.js';

/** GPUs with who is on them. */
@Injectable()
export class GpuReader {
  constructor(private readonly dataSource: DataSource) {}

  /** In the order given; two statements for any number of GPUs. */
  async read(gpus: readonly GpuEntity[], manager: EntityManager = this.dataSource.manager): Promise<Gpu[]> {
    const leases = await this.leasesOn(manager, gpus);
    const pools = await manager.find(PoolEntity, { where: { poolId: In(gpus.flatMap(({ poolId }) => poolId ?? [])) } });
    const modes = new Map(pools.map(({ poolId, sharingMode }) => [poolId, sharingMode]));
    const byGpu = Map.groupBy(leases, ({ gpuId }) => gpuId);
    return gpus.map((gpu) => gpuView(gpu, byGpu.get(gpu.gpuId) ?? [], modes.get(gpu.poolId ?? '') ?? null));
  }

  /** `OFFSET 0` has each holder looked up in the index: those that have ended are many, and are not to be read. */
  private async leasesOn(
    manager: EntityManager,
    gpus: readonly GpuEntity[],
  ): Promise<(ShownLease & { gpuId: string })[]> {
    return manager.query(
      `SELECT gpu_id AS "gpuId", lease.profile, slot_start AS "slotStart", slot_size AS "slotSize", turn, lease.subscription_id AS "subscriptionId",
         lease.workload_id AS "workloadId", subscription.state = 'subscribing' OR is_added OR coalesce(workload.state = 'pending', false) AS "isAwaited"
       FROM lease
       CROSS JOIN LATERAL (SELECT state FROM subscription WHERE subscription.subscription_id = lease.subscription_id OFFSET 0) subscription
       LEFT JOIN LATERAL (SELECT state FROM workload WHERE workload.workload_id = lease.workload_id OFFSET 0) workload ON true
       WHERE gpu_id = ANY ($1::bigint[]) AND lost_reason IS NULL ORDER BY slot_start, turn, lease_id`,
      [gpus.map(({ gpuId }) => gpuId)],
    );
  }
}
