import { instant } from '@atoll/database';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { SubscriptionEntity } from './subscription.entity.js';

@Entity('workload')
@Index(['teamId', 'createdAt', 'workloadId'])
@Index('workload_live_of_team', { synchronize: false })
@Index('workload_live_of_subscription', { synchronize: false })
@Index('workload_pod', { synchronize: false })
@MachineIndexes('workload')
export class WorkloadEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  workloadId!: string;

  @ForeignKey(() => SubscriptionEntity)
  @Index()
  @Column('bigint')
  subscriptionId!: string;

  @Column('uuid')
  teamId!: string;

  @Column('text')
  name!: string;

  @Column('integer')
  vgpus!: number;

  /** Of the pod whose workload this is, and which of its starts; null where a user started it. */
  @Column('uuid', { nullable: true })
  podId!: string | null;

  @Column('integer', { nullable: true })
  podStart!: number | null;

  /** Why it could not be started; null: it was, or may yet be. */
  @Column('text', { nullable: true })
  failure!: string | null;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
