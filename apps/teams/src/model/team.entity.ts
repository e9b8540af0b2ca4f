import type { TeamStatus } from '@atoll/contracts/teams';
import { instant } from '@atoll/database';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { ImagePolicyEntity } from './image-policy.entity.js';

/** A deleted team keeps its row and its workspaces, for the operator's history, and is not found by any operation. */
@Entity('team')
@Index(['createdAt', 'id'], { where: 'deleted_at IS NULL' })
@Index(['deletedAt', 'id'], { where: 'deleted_at IS NOT NULL' })
@Check('team_status_check', `status IN ('active', 'deleting')`)
export class TeamEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  name!: string;

  @Column('text')
  description!: string;

  @Column('text', { default: 'active' })
  status!: TeamStatus;

  @Column('boolean', { default: false })
  isSuspended!: boolean;

  /** Whether sessions take a second factor to act here. */
  @Column('boolean', { default: false })
  requireSecondFactor!: boolean;

  @Index()
  @ForeignKey(() => ImagePolicyEntity)
  @Column('uuid')
  policyId!: string;

  /** Grows by one with every change that others are told of. */
  @Column('integer', { default: 1 })
  revision!: number;

  /** The deletion that is under way: whose answers count. */
  @Column('uuid', { nullable: true })
  deletionAttemptId!: string | null;

  /** When upkeep calls it off, where it is not forced. */
  @Index({ where: 'deletion_deadline IS NOT NULL' })
  @Column({ ...instant, nullable: true })
  deletionDeadline!: Date | null;

  /** Set for a forced deletion, which continues until the team holds nothing and is never cancelled. */
  @Column({ ...instant, nullable: true })
  forcedDeletionBeganAt!: Date | null;

  /** When upkeep asks the holders again. */
  @Index({ where: 'forced_deletion_due_at IS NOT NULL' })
  @Column({ ...instant, nullable: true })
  forcedDeletionDueAt!: Date | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;

  @Column({ ...instant, nullable: true })
  deletedAt!: Date | null;
}
