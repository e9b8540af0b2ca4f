import { baremetalChanged } from '@atoll/contracts/gpuaas';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { statusOf } from './baremetal-instance-reader.js';

/** Publishes what becomes of instances, in the transaction in which it does. */
@Injectable()
export class BaremetalInstanceEvents {
  constructor(private readonly outbox: Outbox) {}

  async changed(manager: EntityManager, instance: BaremetalInstanceEntity): Promise<void> {
    const { instanceId, revision, teamId, workspaceId, nodeId, name, createdAt } = instance;
    const node =
      nodeId === null
        ? null
        : await manager.findOne(BaremetalNodeEntity, { select: { regionId: true }, where: { nodeId } });
    await this.outbox.add(manager, baremetalChanged, {
      instance_id: instanceId,
      revision,
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: node?.regionId ?? instance.regionId,
      name,
      status: statusOf(instance),
      created_at: createdAt.toISOString(),
    });
  }
}
