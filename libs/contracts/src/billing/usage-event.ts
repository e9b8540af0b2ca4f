import { ApiProperty, ApiPropertyOptional, type ApiPropertyOptions } from '@nestjs/swagger';
import { Instant, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { linePattern } from '../text.js';
import { aSku } from './price.js';

export const maxAttributes = 32;
export const maxAttributeText = 200;
export const attributeName = /^[a-z][a-z0-9_]{0,63}$/;

export const usageKinds = ['gpuaas_pool', 'pod', 'vm', 'baremetal', 'shared_storage'] as const;
export type UsageKind = (typeof usageKinds)[number];
export type UsageAttributes = Record<string, string | number | boolean>;

/**
 * A fact: at `time`, the resource has `quantity` units of the SKU, until the next fact of its timeline (team_id,
 * resource_id, sku) says otherwise. Facts may come twice, late, and out of order. At one instant the greater
 * `sequence`, then the greater `(source, id)` bytewise, holds.
 */
export class UsageEvent {
  @Text({
    max: 64,
    example: 'meter-1',
    description: 'Name of the meter that sends the fact; names that begin with `atoll-` are reserved.',
  })
  source!: string;

  @Text({ max: 128, example: 'f6a1c8', description: 'Id of the fact, unique for ever within its source.' })
  id!: string;

  @Instant({
    decimals: 'milliseconds',
    example: '2026-10-01T00:00:00.000Z',
    description: 'Instant of the fact, to the millisecond: from the year 2000 to 5 minutes ahead.',
  })
  time!: string;

  @WholeNumber({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    optional: true,
    description: 'Order among facts of one instant, 0 to 9007199254740991; 0 if left out.',
  })
  sequence?: number;

  @Text({ max: 200, example: 'gpuaas_pool:42' })
  resource_id!: string;

  @Text({ max: 200, optional: true, example: 'training' })
  resource_name?: string;

  @OneOf('UsageKind', usageKinds, { example: 'gpuaas_pool' })
  kind!: UsageKind;

  @Text(aSku)
  sku!: string;

  /** Decimal text from here on: it goes through no float. */
  @ApiProperty({
    type: Number,
    minimum: 0,
    maximum: 1_000_000_000,
    example: 2.5,
    description: 'Units held, 0 to 1000000000 with at most 9 decimals; 0 ends the SKU.',
  })
  quantity!: string;

  @Uuid()
  team_id!: string;

  @Uuid({ description: 'Id of the workspace; another one than before moves the timeline there from `time` on.' })
  workspace_id!: string;

  @NumberedId({ optional: true, example: '1' })
  region_id?: string;

  @NumberedId({ optional: true, example: '7', description: 'Id of the pool; required for the kind gpuaas_pool.' })
  pool_id?: string;

  @ApiPropertyOptional({
    type: 'object',
    maxProperties: maxAttributes,
    propertyNames: { pattern: attributeName.source },
    additionalProperties: {
      anyOf: [
        { type: 'string', minLength: 1, maxLength: maxAttributeText, pattern: linePattern },
        { type: 'number' },
        { type: 'boolean' },
      ],
    },
    example: { pool_name: 'a100-spatial', pool_profiles: 1, profile: '1g.10gb', v_ram_gb: 10 },
    description:
      'Flat object of at most 32 details. Reports show the latest `profile` and `v_ram_gb` of a subscription (those of a SKU ' +
      '`gpu.<board>.<profile>` where no event has them), `used_size_in_gb` of a volume and `pool_name` of a pool. ' +
      '`pool_profiles`: the number of profiles that the pool sells, sent with `pool_name`.',
  } as ApiPropertyOptions)
  attributes?: UsageAttributes;
}
