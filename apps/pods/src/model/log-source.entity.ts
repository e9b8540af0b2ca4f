import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';

/** What a team has in one GPU service, as a number: lines of it lie together. */
@Entity('log_scope')
@Unique(['teamId', 'gpuaasId'])
export class LogScopeEntity {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  no!: number;

  @Column('uuid')
  teamId!: string;

  @Column('bigint')
  gpuaasId!: string;
}

/** What writes lines, and how far it was read. It outlives its pod until its lines are too old. */
@Entity('log_source')
@Unique(['podId', 'isPlatform'])
@Index(['scopeNo'])
@Index('log_source_late', ['scopeNo', 'holdsUntil'], { where: 'holds_until IS NOT NULL' })
@Index('log_source_of_reader', ['readerId', 'scopeNo'], { where: 'reader_id IS NOT NULL' })
export class LogSourceEntity {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  no!: number;

  @Column('uuid')
  podId!: string;

  @Column('text')
  podName!: string;

  /** Whether these are the lines that the platform writes about the pod. */
  @Column('boolean')
  isPlatform!: boolean;

  @ForeignKey(() => LogScopeEntity)
  @Column('integer')
  scopeNo!: number;

  /** The run that is being read. */
  @Column('integer', { default: 0 })
  run!: number;

  /** Where to read on in it, as the driver told; null: from its start. */
  @Column('text', { nullable: true })
  cursor!: string | null;

  /** Position of the last line: the next is later. */
  @Column('bigint', { default: 0 })
  lastNs!: string;

  /** The replica that reads it: `LogReaderEntity`; null: nothing of it is left to read. */
  @Column('uuid', { nullable: true })
  readerId!: string | null;

  /**
   * Of what it wrote before this instant, its reader has stored all that there is; null: it is as far as its reader.
   */
  @Column({ ...instant, nullable: true })
  readTo!: Date | null;

  /** Until then, who follows several pods waits for what it wrote after `readTo`; null where that is. */
  @Column({ ...instant, nullable: true })
  holdsUntil!: Date | null;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  changedAt!: Date;
}

/** A replica that reads logs. What one has claimed is free when it has not shown up for a while. */
@Entity('log_reader')
export class LogReaderEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Column(instant)
  aliveUntil!: Date;

  /** Null: it is of the release before. */
  @Column({ ...instant, nullable: true })
  startedAt!: Date | null;

  /** What had reached it by then is stored, but for sources with a `readTo` of their own; null as above. */
  @Column({ ...instant, nullable: true })
  readTo!: Date | null;
}

/** A line that the platform writes about a pod, on its way into the store. */
@Entity('platform_line')
@Index(['podId', 'id'])
export class PlatformLineEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column('uuid')
  podId!: string;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  at!: Date;

  @Column('text')
  message!: string;
}

/** What a team has written in a day, UTC. */
@Entity('log_volume')
export class LogVolumeEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @PrimaryColumn('date')
  day!: string;

  @Column('bigint')
  bytes!: string;
}
