import { IntersectionType } from '@nestjs/swagger';
import { Instant, ListOf, Nested, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { GpuHoldings } from '../gpuaas/holdings.js';
import { PodHoldings } from '../pods/holdings.js';

/** What a team holds in one region, or in all. */
export class ResourceHoldings extends IntersectionType(GpuHoldings, PodHoldings) {}

export class RegionalHoldings extends ResourceHoldings {
  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'eu-north' })
  region_name!: string;
}

/**
 * What a team holds now, by kind.
 */
export class ResourceOverview {
  @Uuid()
  team_id!: string;

  @Instant({ description: 'Instant of the figures.' })
  as_of!: string;

  @Nested(() => ResourceHoldings, { description: 'Sum of all regions.' })
  total!: ResourceHoldings;

  @ListOf(() => RegionalHoldings, {
    max: 10_000,
    description: 'Regions in which the team holds something, by `region_id`.',
  })
  regions!: RegionalHoldings[];
}
