import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A run, with its workload, whose end was given up and is outstanding. */
@Entity('given_up_end')
@Index(['gpuaasId', 'tryAt'])
@Index('given_up_end_turn', { synchronize: false })
export class GivenUpEndEntity {
  /** `pod` or `vm`. */
  @PrimaryColumn('text')
  kind!: string;

  @PrimaryColumn('uuid')
  id!: string;

  /** 0 where there was none yet. */
  @PrimaryColumn('integer')
  run!: number;

  /** Of a pod: the start whose workload is to end. 0 for a VM, which has none. */
  @PrimaryColumn('integer')
  start!: number;

  @Column('bigint')
  gpuaasId!: string;

  /** A replica of the release before does not name it: its ends take turns as one team's. */
  @Column('uuid', { default: 'ffffffff-ffff-ffff-ffff-ffffffffffff' })
  teamId!: string;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  tryAt!: Date;
}
