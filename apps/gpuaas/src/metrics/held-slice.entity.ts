import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { GpuEntity } from '../model/gpu.entity.js';
import { SubscriptionEntity } from '../model/subscription.entity.js';

/**
 * When a subscription held which slice, or turn, of which GPU. Written by triggers on `lease` alone, and kept for as
 * long as a metric window can reach back.
 */
@Entity('held_slice')
@Index('held_slice_open', { synchronize: false })
@Index('held_slice_closed', { synchronize: false })
@Index('held_slice_of_subscription', ['subscriptionId', 'heldUntil'])
export class HeldSliceEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  heldSliceId!: string;

  /** The lease itself is deleted when it is given back. */
  @Column('bigint')
  leaseId!: string;

  @ForeignKey(() => SubscriptionEntity)
  @Column('bigint')
  subscriptionId!: string;

  @ForeignKey(() => GpuEntity)
  @Column('bigint')
  gpuId!: string;

  /** Whether it was a slice alone. Otherwise it was, or could become, a turn of the whole GPU. */
  @Column('boolean')
  isSlot!: boolean;

  @Column('smallint', { nullable: true })
  gpuInstanceId!: number | null;

  @Column(instant)
  heldFrom!: Date;

  /** null: it is still held. */
  @Column({ ...instant, nullable: true })
  heldUntil!: Date | null;
}
