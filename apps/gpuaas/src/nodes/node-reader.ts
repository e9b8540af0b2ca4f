import type { GpuNode, NodeStatus } from '@atoll/contracts/gpuaas';
import { Injectable } from '@nestjs/common';
import { DataSource, In, type EntityManager } from 'typeorm';
import { GpuEntity } from '../model/gpu.entity.js';
import { GpuReader } from '../sharing/gpu-reader.js';
import { NodeTroubles } from '../sharing/node-troubles.js';
import { NodeEntity } from '../model/node.entity.js';

/** Whether a node is to be initialised when it is uncordoned, its GPUs show. */
export function nodeStatusOf(state: string): NodeStatus {
  return state === 'cordoned_failed' ? 'cordoned' : (state as NodeStatus);
}

/** Nodes as the operator sees them: with their GPUs, and who is on those. */
@Injectable()
export class NodeReader {
  constructor(
    private readonly dataSource: DataSource,
    private readonly gpus: GpuReader,
    private readonly troubles: NodeTroubles,
  ) {}

  /** Four statements for any number of nodes. */
  async read(nodes: readonly NodeEntity[], manager: EntityManager = this.dataSource.manager): Promise<GpuNode[]> {
    const gpus = await manager.find(GpuEntity, {
      where: { nodeId: In(nodes.map(({ nodeId }) => nodeId)) },
      order: { gpuId: 'ASC' },
    });
    const views = await this.gpus.read(gpus, manager);
    const troubles = await this.troubles.reasonsOf(
      manager,
      nodes.map(({ nodeId }) => nodeId),
    );
    const byNode = Map.groupBy(views, (_view, at) => gpus[at]?.nodeId);
    return nodes.map((node) => ({
      node_id: node.nodeId,
      gpuaas_id: node.gpuaasId,
      node_name: node.nodeName,
      status: nodeStatusOf(node.state),
      reason: node.lastError?.message ?? troubles.get(node.nodeId) ?? null,
      retry_at: node.state === 'init_failed' ? (node.parkedUntil?.toISOString() ?? null) : null,
      gpus: byNode.get(node.nodeId) ?? [],
      created_at: node.createdAt.toISOString(),
    }));
  }
}
