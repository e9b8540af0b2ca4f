import { instant } from '@atoll/database';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { PoolEntity } from './pool.entity.js';

@Entity('subscription')
@Index(['createdAt', 'subscriptionId'])
@Index(['teamId', 'createdAt', 'subscriptionId'])
@Index('subscription_live', { synchronize: false })
@Index('subscription_live_of_team', { synchronize: false })
@Index('subscription_live_of_pool', { synchronize: false })
@Index('subscription_draining', { synchronize: false })
@MachineIndexes('subscription')
export class SubscriptionEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  subscriptionId!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  @ForeignKey(() => PoolEntity)
  @Column('bigint')
  poolId!: string;

  @Column('text', { nullable: true })
  name!: string | null;

  @Column('text')
  profile!: string;

  /** As granted: every endpoint and billing show this figure. */
  @Column('numeric', { precision: 9, scale: 2 })
  vRamGb!: string;

  @Column('integer')
  vgpus!: number;

  /** The size that it is to have, or could not have; null: it was not asked for another. */
  @Column('integer', { nullable: true })
  resizeVgpus!: number | null;

  /** Why it could not have that size. */
  @Column('text', { nullable: true })
  resizeFailure!: string | null;

  /** Why it could not be granted; null: it was, or may yet be. */
  @Column('text', { nullable: true })
  failure!: string | null;

  /** From when on it is billed; null: it never was active. */
  @Column({ ...instant, nullable: true })
  activeSince!: Date | null;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
