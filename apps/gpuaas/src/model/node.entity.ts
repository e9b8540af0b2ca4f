import { instant } from '@atoll/database';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { GpuaasEntity } from './region.entity.js';

@Entity('node')
@Unique(['gpuaasId', 'nodeName'])
@MachineIndexes('node')
@Index('node_failing', { synchronize: false })
@Index('node_not_begun', { synchronize: false })
@Index('node_not_begun_held', { synchronize: false })
export class NodeEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  nodeId!: string;

  @ForeignKey(() => GpuaasEntity)
  @Column('bigint')
  gpuaasId!: string;

  @Column('text')
  nodeName!: string;

  /** Whether what is under way, or failed, is a reset. */
  @Column('boolean', { default: false })
  isReset!: boolean;

  /** Newcomers are kept away, whatever becomes of the node meanwhile, until it is uncordoned. */
  @Column('boolean', { default: false })
  isCordoned!: boolean;

  /** Whether somebody had a part of its GPUs, or waited for one, when it was last to be initialised again. */
  @Column('boolean', { default: false })
  hasTenants!: boolean;

  /** Runs that did not succeed, in a row. */
  @Column('integer', { default: 0 })
  failures!: number;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
