import type { GpuNode, NodeStatus } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { DataSource, In, type EntityManager } from 'typeorm';
import { GpuEntity } from '../gpus/gpu.entity.js';
import { gpuView, type ShownLease } from '../gpus/gpu-view.js';
import { PoolEntity } from '../pools/pool.entity.js';
import { NodeEntity } from './node.entity.js';

/** Nodes as the operator sees them: with their GPUs, and who is on those. */
@Injectable()
export class NodeReader {
  constructor(private readonly dataSource: DataSource) {}

  /** Four statements for any number of nodes. */
  async read(nodes: readonly NodeEntity[], manager: EntityManager = this.dataSource.manager): Promise<GpuNode[]> {
    const gpus = await manager.find(GpuEntity, { where: { nodeId: In(nodes.map(({ nodeId }) => nodeId)) }, order: { gpuId: 'ASC' } });
    const leases = await this.leasesOn(manager, gpus);
    const pools = await manager.find(PoolEntity, { where: { poolId: In(gpus.flatMap(({ poolId }) => poolId ?? [])) } });
    const modes = new Map(pools.map(({ poolId, sharingMode }) => [poolId, sharingMode]));
    const byGpu = Map.groupBy(leases, ({ gpuId }) => gpuId);
    const byNode = Map.groupBy(gpus, ({ nodeId }) => nodeId);
    const viewOf = (gpu: GpuEntity) => gpuView(gpu, byGpu.get(gpu.gpuId) ?? [], modes.get(gpu.poolId ?? '') ?? null);
    return nodes.map((node) => ({
      node_id: node.nodeId,
      gpuaas_id: node.gpuaasId,
      node_name: node.nodeName,
      status: node.state as NodeStatus,
      reason: node.lastError?.message ?? null,
      retry_at: node.state === 'init_failed' ? (node.parkedUntil?.toISOString() ?? null) : null,
      gpus: (byNode.get(node.nodeId) ?? []).map(viewOf),
      created_at: node.createdAt.toISOString(),
    }));
  }

  private async leasesOn(manager: EntityManager, gpus: readonly GpuEntity[]): Promise<(ShownLease & { gpuId: string })[]> {
    return manager.query(
      `SELECT gpu_id AS "gpuId", lease.profile, slot_start AS "slotStart", slot_size AS "slotSize", turn, lease.subscription_id AS "subscriptionId",
         lease.workload_id AS "workloadId", subscription.state = 'subscribing' OR coalesce(workload.state = 'pending', false) AS "isAwaited"
       FROM lease JOIN subscription USING (subscription_id) LEFT JOIN workload ON workload.workload_id = lease.workload_id
       WHERE gpu_id = ANY ($1::bigint[]) AND lost_reason IS NULL ORDER BY slot_start, turn, lease_id`,
      [gpus.map(({ gpuId }) => gpuId)],
    );
  }
}
