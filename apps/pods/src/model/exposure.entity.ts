import type { ServiceProtocol } from '@atoll/contracts/pods';
import { MachineIndexes, type MachineError } from '@atoll/state-machine';
import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';
import { FailingRow } from './failing-row.js';
import { PodEntity } from './pod.entity.js';

/**
 * Besides the door of its `run` and the next one, an exposed service sees to so many before it. Any other with its
 * number is nobody's.
 */
export const doorsBefore = 3;

/** What an exposed service opens: its present terms, or those that an update asks for. */
export interface DoorTerms {
  readonly port: number;
  readonly protocol: ServiceProtocol;
  readonly externalPort: number;
  readonly isSsl: boolean;
}

@Entity('exposure')
@Index('exposure_name', { synchronize: false })
@Index('exposure_deleted', { synchronize: false })
@MachineIndexes('exposure')
export class ExposureEntity extends FailingRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  serviceId!: string;

  @Index()
  @ForeignKey(() => PodEntity)
  @Column('uuid')
  podId!: string;

  /** The team of its pod. null where the release before has made it. */
  @Column('uuid', { nullable: true })
  ownerId!: string | null;

  @Column('bigint')
  gpuaasId!: string;

  @Column('text')
  publicHost!: string;

  @Column('text')
  serviceName!: string;

  /** null: it has the name with which it was made. */
  @Column({ ...instant, nullable: true })
  renamedAt!: Date | null;

  @Column('integer')
  port!: number;

  @Column('text')
  protocol!: ServiceProtocol;

  @Column('integer')
  externalPort!: number;

  @Column('boolean')
  isSsl!: boolean;

  /** The platform has chosen the external port, and may choose another. */
  @Column('boolean')
  isPicked!: boolean;

  /** Counts the doors that were requested for it: each external port, and each try, is a run of its own. */
  @Column('integer', { default: 1 })
  run!: number;

  /**
   * While `updating`: what it is to be, and its name before, which it has again where that comes to nothing. `run + 1`
   * is its door. null once this door is open.
   */
  @Column('jsonb', { nullable: true })
  next!: (DoorTerms & { readonly previousName?: string }) | null;

  /** Why the last update or the last port came to nothing. */
  @Column('jsonb', { nullable: true })
  problem!: Omit<MachineError, 'at'> | null;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}

/** An external port that an exposed service has, or that is known to be taken by something else on the host. */
@Entity('reserved_port')
export class ReservedPortEntity {
  @PrimaryColumn('text')
  publicHost!: string;

  @PrimaryColumn('integer')
  externalPort!: number;

  /** null: something else on the host has it, and it is tried again after `until`. */
  @Index()
  @ForeignKey(() => ExposureEntity)
  @Column('bigint', { nullable: true })
  serviceId!: string | null;

  @Column({ ...instant, nullable: true })
  until!: Date | null;
}
