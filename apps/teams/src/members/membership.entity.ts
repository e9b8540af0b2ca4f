import type { TeamRole } from '@atoll/contracts';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { TeamEntity } from '../teams/team.entity.js';
import { UserEntity } from '../users/user.entity.js';

@Entity('membership')
@Unique(['teamId', 'userId'])
@Index(['teamId', 'createdAt', 'id'])
@Check('membership_role_check', `role IN ('team_owner', 'team_admin', 'member', 'billing_viewer', 'viewer')`)
export class MembershipEntity {
  /** Keeps members who joined at one moment in the order in which they were named. */
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => TeamEntity)
  @Column('uuid')
  teamId!: string;

  @Index()
  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  @Column('text')
  role!: TeamRole;

  @Column({ type: 'timestamptz', precision: 3, default: () => 'now()' })
  createdAt!: Date;
}
