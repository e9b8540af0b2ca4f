import type { HeldUsage } from '@atoll/team-directory';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';

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

/** From the instance's `enteredAt` on: 1 where it holds its host, 0 where it does not. */
export function usageOf(instance: BaremetalInstanceEntity, node: BaremetalNodeEntity, quantity: 0 | 1): HeldUsage[] {
  const held: HeldUsage = {
    row: instance,
    kind: 'baremetal',
    id: instance.instanceId,
    name: instance.name,
    sku: skuOf(node),
    quantity,
    regionId: node.regionId,
    attributes: { ...(node.gpuModel !== null && { gpu_model: node.gpuModel }), gpu_count: node.gpuCount },
  };
  const earlier = earlierSkuOf(node);
  if (quantity === 1 || earlier === undefined || earlier === held.sku) return [held];
  return [held, { ...held, mark: `${instance.revision}:earlier`, sku: earlier }];
}
