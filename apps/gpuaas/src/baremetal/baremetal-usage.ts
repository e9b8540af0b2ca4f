import { gpuUsageTold } from '@atoll/contracts/billing';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import type { BaremetalNodeEntity } from '../model/baremetal-node.entity.js';

function baremetalSku(gpuModel: string, gpuCount: number): string {
  return `baremetal.${gpuModel}-x${gpuCount}`;
}

/** Of a SKU: in lower case, and other characters are `-`. */
function inSku(gpuModel: string): string {
  return gpuModel.toLowerCase().replace(/[^a-z0-9.-]/g, '-');
}

/** Publishes what an instance holds, in the transaction of the transition that changes it. */
@Injectable()
export class BaremetalUsage {
  constructor(private readonly outbox: Outbox) {}

  /** From the instance's `enteredAt` on: 1 where it holds its host, 0 where it does not. */
  async tell(manager: EntityManager, instance: BaremetalInstanceEntity, node: BaremetalNodeEntity, quantity: 0 | 1): Promise<void> {
    const { instanceId, enteredAt, revision, name, teamId, workspaceId } = instance;
    const fact = {
      id: `baremetal:${instanceId}:${revision}`,
      time: enteredAt.toISOString(),
      sequence: revision,
      resource_id: `baremetal:${instanceId}`,
      resource_name: name,
      kind: 'baremetal' as const,
      sku: baremetalSku(inSku(node.gpuModel), node.gpuCount),
      quantity: String(quantity),
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: node.regionId,
      attributes: { gpu_model: node.gpuModel, gpu_count: node.gpuCount },
    };
    // An earlier release wrote the model as it is declared: what began under that name ends too.
    const earlier = baremetalSku(node.gpuModel, node.gpuCount);
    const alsoEnds = quantity === 0 && earlier !== fact.sku ? [{ ...fact, id: `${fact.id}:earlier`, sku: earlier }] : [];
    await this.outbox.add(manager, gpuUsageTold, { facts: [fact, ...alsoEnds] });
  }
}
