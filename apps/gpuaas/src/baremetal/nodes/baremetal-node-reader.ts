import type { BaremetalHostSpecs, BaremetalNode, BaremetalNodeStatus } from '@atoll/contracts/gpuaas';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import type { BaremetalNodeState } from '../../model/baremetal-node.machine.js';
import { Ledger } from '../hosts/ledger.js';

const nodeStatuses: Record<BaremetalNodeState, BaremetalNodeStatus> = {
  checking: 'Checking',
  check_failed: 'Check failed',
  available: 'Available',
  in_service: 'In service',
  releasing: 'Releasing',
  reinstalling: 'Releasing',
  clean_failed: 'Clean failed',
  removed: 'Clean failed',
};

/** What is shown of nodes. Nothing secret is in it. */
@Injectable()
export class BaremetalNodeReader {
  constructor(private readonly ledger: Ledger) {}

  async views(manager: EntityManager, nodes: readonly BaremetalNodeEntity[]): Promise<BaremetalNode[]> {
    const attempts = await this.ledger.ofNodes(
      manager,
      nodes.map(({ nodeId }) => nodeId),
    );
    return nodes.map((node) => ({
      node_id: node.nodeId,
      name: node.name,
      region_id: node.regionId,
      host: node.host,
      port: node.port,
      ssh_user: node.sshUser,
      host_key: node.hostKey,
      driver: node.driver,
      tenant_sudo: node.tenantSudo,
      home: node.home,
      reinstall: node.reinstallUrl === null ? null : { url: node.reinstallUrl },
      specs: specsOf(node),
      found: node.found,
      differences: node.differences,
      status: nodeStatuses[node.state as BaremetalNodeState],
      reason: node.maintenanceReason ?? node.lastError?.message ?? node.unreachableReason,
      maintenance: node.isMaintenance,
      retired: node.isRetired,
      unreachable_since: node.unreachableSince?.toISOString() ?? null,
      instance_id: node.instanceId,
      attempts: attempts.get(node.nodeId) ?? [],
      created_at: node.createdAt.toISOString(),
    }));
  }
}

export function specsOf({ gpuModel, gpuCount, cpuCores, memoryGb }: BaremetalNodeEntity): BaremetalHostSpecs {
  return { gpu_model: gpuModel, gpu_count: gpuCount, cpu_cores: cpuCores, memory_gb: memoryGb };
}
