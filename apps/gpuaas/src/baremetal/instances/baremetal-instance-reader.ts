import type { BaremetalInstance, BaremetalStatus } from '@atoll/contracts/gpuaas';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import type { BaremetalInstanceState } from '../../model/baremetal-instance.machine.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { specsOf } from '../nodes/baremetal-node-reader.js';
import { keyRequired } from '../hosts/host-access.js';
import { Ledger } from '../hosts/ledger.js';
import { TeamKeys } from '../keys/team-keys.js';

/** A cancelled instance is being released until it is undone; one that failed is still in provisioning. */
const instanceStatuses: Record<BaremetalInstanceState, BaremetalStatus> = {
  requested: 'Requested',
  reaching: 'Provisioning',
  creating_user: 'Provisioning',
  placing_keys: 'Provisioning',
  setting_password: 'Provisioning',
  verifying: 'Provisioning',
  active: 'Active',
  rolling_back: 'Provisioning',
  cancelling: 'Releasing',
  releasing: 'Releasing',
  failed: 'Failed',
  cancelled: 'Cancelled',
  released: 'Released',
};

export function statusOf({ state }: BaremetalInstanceEntity): BaremetalStatus {
  return instanceStatuses[state as BaremetalInstanceState];
}

/** What is shown of instances. Nothing secret is in it. */
@Injectable()
export class BaremetalInstanceReader {
  constructor(
    private readonly ledger: Ledger,
    private readonly keys: TeamKeys,
  ) {}

  /** `nodes`: those that the instances are or were on, by id. */
  async views(
    manager: EntityManager,
    instances: readonly BaremetalInstanceEntity[],
    nodes: ReadonlyMap<string, BaremetalNodeEntity>,
  ): Promise<BaremetalInstance[]> {
    const attempts = await this.ledger.ofInstances(
      manager,
      instances.map(({ instanceId }) => instanceId),
    );
    const teams = new Set(instances.filter(({ state }) => state === 'active').map(({ teamId }) => teamId));
    const keys = new Map<string, string>();
    for (const teamId of teams) keys.set(teamId, (await this.keys.of(teamId)).join('\n'));
    return instances.map((instance) => {
      const node = nodes.get(instance.nodeId ?? '');
      const isActive = instance.state === 'active';
      const { lastError } = instance;
      const pending =
        lastError && !isActive ? { code: lastError.code, message: lastError.message, at: lastError.at } : null;
      const last = attempts.get(instance.instanceId)?.at(-1);
      const error = instance.error ?? (pending && { ...pending, step: last?.step ?? 'allocate' });
      return {
        instance_id: instance.instanceId,
        team_id: instance.teamId,
        workspace_id: instance.workspaceId,
        region_id: node?.regionId ?? instance.regionId,
        name: instance.name,
        status: statusOf(instance),
        reason: error?.message ?? instance.waitingReason,
        error,
        specs: {
          ...(instance.gpuModel !== null && { gpu_model: instance.gpuModel }),
          ...(instance.gpuCount !== null && { gpu_count: instance.gpuCount }),
          ...(instance.cpuCores !== null && { cpu_cores: instance.cpuCores }),
          ...(instance.memoryGb !== null && { memory_gb: instance.memoryGb }),
        },
        host_specs: node ? specsOf(node) : null,
        unreachable_since: node && isActive ? awaySince(node) : null,
        keys_stale: isActive && keys.get(instance.teamId) !== instance.placedKeys,
        attempts: attempts.get(instance.instanceId) ?? [],
        created_at: instance.createdAt.toISOString(),
        active_since: instance.activeSince?.toISOString() ?? null,
        ended_at: instance.endedAt?.toISOString() ?? null,
      };
    });
  }
}

/** A host that Atoll does not log in to for want of a key may well be reachable for its tenant. */
function awaySince({ unreachableSince, unreachableReason }: BaremetalNodeEntity): string | null {
  return unreachableReason === keyRequired ? null : (unreachableSince?.toISOString() ?? null);
}
