import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An object of this installation that a cluster has and no row needs. */
@Entity('orphan')
export class OrphanEntity {
  @PrimaryColumn('bigint')
  gpuaasId!: string;

  @PrimaryColumn('text')
  kind!: string;

  /** As the driver has it. */
  @PrimaryColumn('text')
  id!: string;

  @PrimaryColumn('integer')
  run!: number;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  foundAt!: Date;
}
