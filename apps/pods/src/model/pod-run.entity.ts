import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A run that the cluster may still have: its container, and with that its log. It is removed from the cluster, and
 * here, some time after it has ended: when its log was read (`isLogRead`), or after a while.
 */
@Entity('pod_run')
@Index('pod_run_removable', { synchronize: false })
@Index('pod_run_unclaimed', ['podId'], { where: 'NOT is_claimed AND NOT is_log_read' })
export class PodRunEntity {
  @PrimaryColumn('uuid')
  podId!: string;

  @PrimaryColumn('integer')
  run!: number;

  @Column('bigint')
  gpuaasId!: string;

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  /** Not to be removed from its cluster before this: the last try failed. */
  @Column({ ...instant, nullable: true })
  retryAt!: Date | null;

  /**
   * A replica has begun to read its log: another one asks for it only when replicas come or go. One of the release
   * before says nothing of it.
   */
  @Column('boolean', { default: false })
  isClaimed!: boolean;

  /** Whoever keeps logs has all that the run wrote. */
  @Column('boolean', { default: false })
  isLogRead!: boolean;
}
