import { Check, Column, Entity, Exclusion, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { GpuEntity } from './gpu.entity.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { WorkloadEntity } from './workload.entity.js';

/**
 * The hold on one slice or one turn of one GPU. In Spatial it has slots, in Temporal a turn; while a GPU switches, what
 * is to be there in either mode has both. That no slot and no turn is held twice, the database itself sees to.
 */
@Entity('lease')
@Check('lease_place_check', 'slot_start IS NOT NULL OR turn IS NOT NULL OR lost_reason IS NOT NULL')
@Index('lease_turn', { synchronize: false })
@Exclusion(
  'lease_slots',
  'USING gist (int8range(gpu_id * 64 + slot_start, gpu_id * 64 + slot_start + slot_size) WITH &&) WHERE (slot_start IS NOT NULL)',
)
export class LeaseEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  leaseId!: string;

  @Index()
  @ForeignKey(() => GpuEntity)
  @Column('bigint')
  gpuId!: string;

  @Index()
  @ForeignKey(() => SubscriptionEntity)
  @Column('bigint')
  subscriptionId!: string;

  /** While one runs on it. */
  @Index()
  @ForeignKey(() => WorkloadEntity)
  @Column('bigint', { nullable: true })
  workloadId!: string | null;

  @Column('text')
  profile!: string;

  @Column('smallint', { nullable: true })
  slotStart!: number | null;

  @Column('smallint')
  slotSize!: number;

  @Column('smallint', { nullable: true })
  turn!: number | null;

  /** Of the MIG instance, as the node told. */
  @Column('smallint', { nullable: true })
  gpuInstanceId!: number | null;

  /** Of a subscription that grows: its node has not confirmed it yet, and no workload may have it. */
  @Column('boolean', { default: false })
  isAdded!: boolean;

  /** The GPU could not be brought to where it was to be; who asked has yet to take note. */
  @Column('text', { nullable: true })
  lostReason!: string | null;
}
