import { ArrayMaxSize, IsArray, IsInt } from 'class-validator';
import { event } from '../contract.js';
import { Flag, Revision, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';

export class TeamCapacityChanged {
  @Uuid()
  team_id!: string;

  @Revision()
  revision!: number;

  /**
   * The physical GPUs on which the team holds capacity now. Those of bare-metal hosts, which have no id, by negative
   * numbers.
   */
  @IsArray()
  @ArrayMaxSize(100_000)
  @IsInt({ each: true })
  gpu_ids!: number[];

  @Flag()
  has_pool_subscription!: boolean;
}
/** What a team holds of GPUs changed: feeds `has_pool_subscription` of a Team and `card_count` of a User. */
export const teamCapacityChanged = event('gpuaas.team_capacity_changed', TeamCapacityChanged);

export class RegionAdded {
  @NumberedId()
  region_id!: string;

  @Text({ max: 100 })
  region_name!: string;
}
/** A region may be named in billing paths from now on. */
export const regionAdded = event('gpuaas.region_added', RegionAdded);
