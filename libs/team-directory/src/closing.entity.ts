import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A team that was said to hold nothing, because it is to be deleted. */
@Entity('team_closing')
export class TeamClosingEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @Column(instant)
  until!: Date;

  /** Which attempt to delete it: where that is called off, this ends. */
  @Column('uuid', { nullable: true })
  attemptId!: string | null;
}

/** A workspace that was said to hold nothing, because it is to be deleted. */
@Entity('workspace_closing')
export class WorkspaceClosingEntity {
  @PrimaryColumn('uuid')
  workspaceId!: string;

  @Column(instant)
  until!: Date;

  @Column('uuid', { nullable: true })
  attemptId!: string | null;
}
