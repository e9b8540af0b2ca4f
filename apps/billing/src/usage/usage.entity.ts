import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { TeamEntity } from '@atoll/team-directory';

/** A region that an event or a fact has named. */
@Entity('region')
export class RegionEntity {
  @PrimaryColumn('bigint')
  regionId!: string;

  @Column('text', { nullable: true })
  name!: string | null;
}

/** What reports group by: one row for each combination that a team has had. */
@Entity('series')
@Check('series_kind_check', `kind IN ('gpuaas_pool', 'pod', 'vm', 'baremetal', 'shared_storage')`)
@Index('series_of_team', { synchronize: false })
export class SeriesEntity {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  no!: number;

  @ForeignKey(() => TeamEntity)
  @Column('integer')
  teamNo!: number;

  @Column('uuid')
  workspaceId!: string;

  @Column('text')
  kind!: string;

  @Column('text')
  sku!: string;

  @Column('bigint', { nullable: true })
  regionId!: string | null;

  @Column('bigint', { nullable: true })
  poolId!: string | null;
}

/** What a resource holds of one SKU, over time. Its row is locked by whoever changes its segments. */
@Entity('timeline')
@Unique(['teamNo', 'resourceId', 'sku'])
export class TimelineEntity {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  no!: number;

  @ForeignKey(() => TeamEntity)
  @Column('integer')
  teamNo!: number;

  @Column('text')
  resourceId!: string;

  @Column('text')
  sku!: string;
}

/** What was told: at `timeMs` the timeline has `quantityNano` × 10^-9 units, in that series. Append-only. */
@Entity('usage_fact')
@Check('usage_fact_quantity_nano_check', `quantity_nano >= 0`)
@Index(['timelineNo', 'timeMs'])
@Index('usage_fact_with_name', { synchronize: false })
@Index('usage_fact_with_used_size', { synchronize: false })
@Index('usage_fact_with_profile', { synchronize: false })
@Index('usage_fact_with_pool_name', { synchronize: false })
export class UsageFactEntity {
  @PrimaryColumn('text', { collation: 'C' })
  source!: string;

  @PrimaryColumn('text', { collation: 'C' })
  id!: string;

  @Column('integer')
  timelineNo!: number;

  @Column('integer')
  seriesNo!: number;

  @Column('bigint')
  timeMs!: string;

  @Column('bigint')
  sequence!: string;

  @Column('bigint')
  quantityNano!: string;

  @Column('text', { nullable: true })
  resourceName!: string | null;

  @Column('jsonb', { nullable: true })
  attributes!: object | null;
}

/** A segment derived from the facts of a timeline: [startMs, endMs) × quantity. */
@Entity('segment')
@Index('segment_of_team', { synchronize: false })
@Check('segment_quantity_nano_check', `quantity_nano > 0`)
@Check('segment_check', `end_ms > start_ms`)
export class SegmentEntity {
  @PrimaryColumn('integer')
  timelineNo!: number;

  @PrimaryColumn('bigint')
  startMs!: string;

  @Column('bigint')
  endMs!: string;

  @Column('bigint')
  quantityNano!: string;

  @Column('integer')
  teamNo!: number;

  @Column('integer')
  seriesNo!: number;
}

/** What a timeline holds now, from `startMs` on. Derived. */
@Entity('open_segment')
@Check('open_segment_quantity_nano_check', `quantity_nano > 0`)
export class OpenSegmentEntity {
  @PrimaryColumn('integer')
  timelineNo!: number;

  @Column('bigint')
  startMs!: string;

  @Column('bigint')
  quantityNano!: string;

  @Index()
  @Column('integer')
  teamNo!: number;

  @Column('integer')
  seriesNo!: number;
}
