import { instant } from '@atoll/database';
import type { Mechanism, SharingMode } from '@atoll/gpu';
import { Column, Entity, ForeignKey, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { GpuaasEntity } from './region.entity.js';

@Entity('pool')
@Unique(['gpuaasId', 'poolName'])
export class PoolEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  poolId!: string;

  @ForeignKey(() => GpuaasEntity)
  @Column('bigint')
  gpuaasId!: string;

  @Column('text')
  poolName!: string;

  /** Of all its GPUs. */
  @Column('text')
  board!: string;

  @Column('text')
  sharingMode!: SharingMode;

  @Column('text')
  mechanism!: Mechanism;

  /** What it sells, from small to large. */
  @Column('text', { array: true })
  profiles!: string[];

  /** Parts of a GPU, but for MIG. */
  @Column('integer', { nullable: true })
  replicas!: number | null;

  @Column('integer')
  overcommit!: number;

  @Column('boolean')
  allowFallback!: boolean;

  /** Turns of a GPU that fell back. */
  @Column('integer', { nullable: true })
  temporalReplicas!: number | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
