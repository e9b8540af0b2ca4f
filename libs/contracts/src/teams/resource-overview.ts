import { Instant, ListOf, Nested, Uuid } from '../fields.js';
import { GpuHoldings, RegionalGpuHoldings } from '../gpuaas/holdings.js';

/**
 * What a team holds now. It has the kinds of resources that the platform offers, GPUs and bare metal at present. A kind that is not
 * offered is left out, and not shown as zero; pods, VMs and storage will be further fields.
 */
export class ResourceOverview {
  @Uuid()
  team_id!: string;

  @Instant({ description: 'Instant of the figures.' })
  as_of!: string;

  @Nested(() => GpuHoldings, { description: 'Sum of all regions.' })
  total!: GpuHoldings;

  @ListOf(() => RegionalGpuHoldings, { max: 10_000, description: 'Regions in which the team holds something, by `region_id`.' })
  regions!: RegionalGpuHoldings[];
}
