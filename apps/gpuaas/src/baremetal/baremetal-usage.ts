import { gpuUsageTold } from '@atoll/contracts/billing';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import type { BaremetalNodeEntity } from '../model/baremetal-node.entity.js';

type Host = Pick<BaremetalNodeEntity, 'gpuModel' | 'gpuCount'>;

/** In lower case; other characters are `-`. */
function skuOf({ gpuModel, gpuCount }: Host): string {
  if (gpuModel === null) return 'baremetal.cpu';
  return `baremetal.${gpuModel.toLowerCase().replace(/[^a-z0-9.-]/gu, '-')}-x${gpuCount}`;
}

/**
 * The SKU under which an earlier release began to bill a host: it wrote the model as it is declared, and took only what
 * can stand in a SKU.
 */
function earlierSkuOf({ gpuModel, gpuCount }: Host): string | undefined {
  return gpuModel !== null && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(gpuModel)
    ? `baremetal.${gpuModel}-x${gpuCount}`
    : undefined;
}

/** Publishes what an instance holds, in the transaction of the transition that changes it. */
@Injectable()
export class BaremetalUsage {
  constructor(private readonly outbox: Outbox) {}

  /** From the instance's `enteredAt` on: 1 where it holds its host, 0 where it does not. */
  async tell(
    manager: EntityManager,
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
    quantity: 0 | 1,
  ): Promise<void> {
    const { instanceId, enteredAt, revision, name, teamId, workspaceId } = instance;
    const fact = {
      id: `baremetal:${instanceId}:${revision}`,
      time: enteredAt.toISOString(),
      sequence: revision,
      resource_id: `baremetal:${instanceId}`,
      resource_name: name,
      kind: 'baremetal' as const,
      sku: skuOf(node),
      quantity: String(quantity),
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: node.regionId,
      attributes: { ...(node.gpuModel !== null && { gpu_model: node.gpuModel }), gpu_count: node.gpuCount },
    };
    const earlier = earlierSkuOf(node);
    const alsoEnds =
      quantity === 0 && earlier && earlier !== fact.sku ? [{ ...fact, id: `${fact.id}:earlier`, sku: earlier }] : [];
    await this.outbox.add(manager, gpuUsageTold, { facts: [fact, ...alsoEnds] });
  }
}
