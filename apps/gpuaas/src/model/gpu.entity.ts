import type { SharingMode } from '@atoll/gpu';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { NodeEntity } from './node.entity.js';
import { PoolEntity } from './pool.entity.js';

/** A physical GPU, an instance of the machine of sharing modes. */
@Entity('gpu')
@Unique(['uuid'])
@MachineIndexes('gpu')
@Index('gpu_lost', { synchronize: false })
@Index('gpu_not_begun', { synchronize: false })
@Index('gpu_not_begun_leased', { synchronize: false })
export class GpuEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  gpuId!: string;

  @Index()
  @ForeignKey(() => NodeEntity)
  @Column('bigint')
  nodeId!: string;

  @Column('text')
  uuid!: string;

  @Column('text')
  board!: string;

  @Index()
  @ForeignKey(() => PoolEntity)
  @Column('bigint', { nullable: true })
  poolId!: string | null;

  /** Of the layout that the device was asked for last. Even: to go there; the odd one after it: to stay where it is. */
  @Column('integer', { default: 0 })
  generation!: number;

  /** What the device was asked for last; null: nothing yet. */
  @Column('text', { nullable: true })
  askedMode!: SharingMode | null;

  /** Bit i: slot i is leased. Made of the rows of `lease` whenever those change, for the search for room. */
  @Column('bigint', { default: 0 })
  slotsUsed!: string;

  /** Bit i: turn i is leased. */
  @Column('bigint', { default: 0 })
  turnsUsed!: string;
}
