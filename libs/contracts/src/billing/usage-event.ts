import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Instant, NumberedId, OneOf, Text, Uuid, WholeNumber } from '../fields.js';
import { aSku } from './price.js';

export const usageKinds = ['gpuaas_pool', 'pod', 'vm', 'baremetal', 'shared_storage'] as const;
export type UsageKind = (typeof usageKinds)[number];
export type UsageAttributes = Record<string, string | number | boolean>;

/**
 * A fact: at `time`, the resource has `quantity` units of the SKU, until the next fact of its timeline (team_id, resource_id, sku) says otherwise.
 * Facts may come twice, late, and out of order. At one instant the greater `sequence`, then the greater `(source, id)` bytewise, holds.
 */
export class UsageEvent {
  @Text({ max: 64, example: 'meter-1', description: 'Who tells it. Names that begin with `atoll-` are the platform’s own.' })
  source!: string;

  @Text({ max: 128, example: 'f6a1c8', description: 'Of this fact, one for ever within its source.' })
  id!: string;

  @Instant({ example: '2026-10-01T00:00:00.000Z', description: 'To the millisecond; at most 5 minutes ahead.' })
  time!: string;

  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER, optional: true, description: 'Orders facts of one instant; 0 unless given.' })
  sequence?: number;

  @Text({ max: 200, example: 'gpuaas_pool:42' })
  resource_id!: string;

  @Text({ max: 200, optional: true, example: 'training' })
  resource_name?: string;

  @OneOf(usageKinds, { example: 'gpuaas_pool' })
  kind!: UsageKind;

  @Text(aSku)
  sku!: string;

  /** Decimal text from here on: it goes through no float. */
  @ApiProperty({
    type: Number,
    minimum: 0,
    maximum: 1_000_000_000,
    example: 2.5,
    description: 'Units held, at most 9 decimals; 0 ends the SKU.',
  })
  quantity!: string;

  @Uuid()
  team_id!: string;

  @Uuid({ description: 'A fact with another workspace moves the timeline there from `time` on.' })
  workspace_id!: string;

  @NumberedId({ optional: true, example: '1' })
  region_id?: string;

  @NumberedId({ optional: true, example: '7', description: 'Needed for the kind gpuaas_pool.' })
  pool_id?: string;

  @ApiPropertyOptional({
    type: 'object',
    additionalProperties: { oneOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] },
    example: { pool_name: 'a100-spatial', pool_profiles: 1, profile: '1g.10gb', v_ram_gb: 10 },
    description:
      'Flat. Reports show the latest `profile` and `v_ram_gb` of a subscription, `used_size_in_gb` of a volume and ' +
      '`pool_name` of a pool. `pool_profiles`: the number of profiles that the pool sells, told with `pool_name`.',
  })
  attributes?: UsageAttributes;
}
