import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { PoolEntity } from './pool.entity.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { WorkloadEntity } from './workload.entity.js';

/** A request that was accepted and gets its leases when GPUs that switch, or are being prepared, are at rest. */
@Entity('waiting_request')
@Index(['poolId', 'waitingId'])
@Index('waiting_request_of_subscription', { synchronize: false })
@Unique(['workloadId'])
export class WaitingRequestEntity {
  /** The order of arrival. */
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  waitingId!: string;

  @ForeignKey(() => PoolEntity)
  @Column('bigint')
  poolId!: string;

  @Column('uuid')
  teamId!: string;

  /**
   * The person, or holder of keys, who requested it: what they request for all of their teams counts together while it
   * waits. null: the operator, a service, or a replica of the release before this column.
   */
  @Column('text', { nullable: true })
  requestedBy!: string | null;

  @ForeignKey(() => SubscriptionEntity)
  @Column('bigint')
  subscriptionId!: string;

  /** null: the subscription itself waits, to begin or to grow. */
  @ForeignKey(() => WorkloadEntity)
  @Column('bigint', { nullable: true })
  workloadId!: string | null;

  /** Whether the subscription is to grow. */
  @Column('boolean', { default: false })
  isAdded!: boolean;

  @Column('text')
  profile!: string;

  @Column('integer')
  vgpus!: number;

  /** Whether all of it has to be on GPUs of one node. */
  @Column('boolean', { default: false })
  isOnOneNode!: boolean;

  /** Why it will get none: its place is gone. The request has yet to take note. */
  @Column('text', { nullable: true })
  refusal!: string | null;
}
