import { instant } from '@atoll/database';
import { MachineIndexes } from '@atoll/state-machine';
import { Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { FailingRow } from './failing-row.js';

@Entity('shared_volume')
@Index(['teamId', 'createdAt', 'volumeId'])
@Index('shared_volume_name', { synchronize: false })
@Index('shared_volume_live_of_cluster', { synchronize: false })
@MachineIndexes('shared_volume')
export class VolumeEntity extends FailingRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  volumeId!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  @Column('bigint')
  regionId!: string;

  @Column('text')
  regionName!: string;

  /** Whose cluster has it: the lane of its steps. */
  @Column('bigint')
  gpuaasId!: string;

  /** Unique in the team among those that are not deleted. */
  @Column('text')
  name!: string;

  /** 10^9 bytes, as the cluster has confirmed it; before it is created as requested. */
  @Column('integer')
  sizeGb!: number;

  /** While `growing`: the requested size. */
  @Column('integer', { nullable: true })
  nextSizeGb!: number | null;

  /** As last observed; null while the cluster has no figure. */
  @Column('bigint', { nullable: true })
  usedBytes!: string | null;

  /** The size that billing was told last; 0: not billed. */
  @Column('integer', { default: 0 })
  billedGb!: number;

  /** When billing was last told the used bytes. */
  @Column({ ...instant, nullable: true })
  usedToldAt!: Date | null;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
