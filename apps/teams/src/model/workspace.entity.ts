import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { TeamEntity } from './team.entity.js';

@Entity('workspace')
@Unique(['teamId', 'name'])
@Index(['teamId'], { unique: true, where: 'is_default' })
export class WorkspaceEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => TeamEntity)
  @Column('uuid')
  teamId!: string;

  @Column('text')
  name!: string;

  /** Made with the team; lives as long as it. */
  @Column('boolean', { default: false })
  isDefault!: boolean;

  /** While the services that may hold something in it are asked. */
  @Column('uuid', { nullable: true })
  deletionAttemptId!: string | null;

  /** When an unfinished deletion no longer blocks another one. */
  @Column({ ...instant, nullable: true })
  deletionDeadline!: Date | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
