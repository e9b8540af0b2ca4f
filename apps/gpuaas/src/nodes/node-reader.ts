import type { GpuNode, NodeStatus } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { DataSource, In, type EntityManager } from 'typeorm';
import { GpuEntity } from '../gpus/gpu.entity.js';
import { gpuView } from '../gpus/gpu-view.js';
import { LeaseEntity } from '../leases/lease.entity.js';
import { PoolEntity } from '../pools/pool.entity.js';
import { NodeEntity } from './node.entity.js';

/** Nodes as the operator sees them: with their GPUs, and who is on those. */
@Injectable()
export class NodeReader {
  constructor(private readonly dataSource: DataSource) {}

  /** Four statements for any number of nodes. */
  async read(nodes: readonly NodeEntity[], manager: EntityManager = this.dataSource.manager): Promise<GpuNode[]> {
    const gpus = await manager.find(GpuEntity, { where: { nodeId: In(nodes.map(({ nodeId }) => nodeId)) }, order: { gpuId: 'ASC' } });
    const leases = await manager.find(LeaseEntity, {
      where: { gpuId: In(gpus.map(({ gpuId }) => gpuId)) },
      order: { slotStart: 'ASC', turn: 'ASC', leaseId: 'ASC' },
    });
    const pools = await manager.find(PoolEntity, { where: { poolId: In(gpus.flatMap(({ poolId }) => poolId ?? [])) } });
    const modes = new Map(pools.map(({ poolId, sharingMode }) => [poolId, sharingMode]));
    const byGpu = Map.groupBy(
      leases.filter(({ lostReason }) => lostReason === null),
      ({ gpuId }) => gpuId,
    );
    const views = gpus.map((gpu) => ({
      nodeId: gpu.nodeId,
      view: gpuView(gpu, byGpu.get(gpu.gpuId) ?? [], modes.get(gpu.poolId ?? '') ?? null),
    }));
    return nodes.map((node) => ({
      node_id: node.nodeId,
      gpuaas_id: node.gpuaasId,
      node_name: node.nodeName,
      status: node.state as NodeStatus,
      reason: node.lastError?.message ?? null,
      retry_at: node.state === 'init_failed' ? (node.dueAt?.toISOString() ?? null) : null,
      gpus: views.filter(({ nodeId }) => nodeId === node.nodeId).map(({ view }) => view),
      created_at: node.createdAt.toISOString(),
    }));
  }
}
