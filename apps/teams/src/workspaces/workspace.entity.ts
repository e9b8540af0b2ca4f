import { Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';
import { TeamEntity } from '../teams/team.entity.js';

@Entity('workspace')
@Unique(['teamId', 'name'])
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

  @Column({ type: 'timestamptz', precision: 3, default: () => 'now()' })
  createdAt!: Date;
}
