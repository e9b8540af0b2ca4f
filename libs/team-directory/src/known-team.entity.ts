import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';

export type TeamStanding = 'active' | 'deleting' | 'deleted';

/**
 * A team as far as a service knows it. A service may have to do with a team before it is told of it: then that has no
 * name yet and revision 0.
 */
@Entity('team')
@Unique(['id'])
export class TeamEntity {
  /** What tables of many rows call the team. */
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' })
  no!: number;

  @Column('uuid')
  id!: string;

  @Column('text', { nullable: true })
  name!: string | null;

  /** Of what is known of the team itself. Of two updates the one with the greater revision holds. */
  @Column('bigint', { default: 0 })
  revision!: string;

  /**
   * The latest revision at which all its workspaces were received: one that was not among them and is older is deleted.
   */
  @Column('bigint', { default: 0 })
  completeRevision!: string;

  @Column('boolean', { default: false })
  isSuspended!: boolean;

  @Column('text', { default: 'active' })
  status!: TeamStanding;

  /** The one it began with; no foreign key, as with all that others own. */
  @Column('uuid', { nullable: true })
  defaultWorkspaceId!: string | null;
}

/** Kept when it is gone: its costs stay readable. No foreign key: it belongs to whom its own service says. */
@Entity('workspace')
export class WorkspaceEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Index()
  @Column('uuid')
  teamId!: string;

  @Column('text')
  name!: string;

  @Column('boolean', { default: false })
  isDeleted!: boolean;

  /** Of the team, when this was said of the workspace. Of two updates the one with the greater revision holds. */
  @Column('bigint', { default: 0 })
  revision!: string;
}

/** One row, once all teams there were at the first start have been fetched from their owner. */
@Entity('team_snapshot')
export class TeamSnapshotEntity {
  @PrimaryColumn(instant)
  completedAt!: Date;
}
