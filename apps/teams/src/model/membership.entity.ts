import type { TeamRole } from '@atoll/contracts';
import type { MemberStatus } from '@atoll/contracts/teams';
import { instant } from '@atoll/database';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { TeamEntity } from './team.entity.js';
import { UserEntity } from './user.entity.js';

@Entity('membership')
@Unique(['teamId', 'userId'])
@Index(['teamId', 'createdAt', 'id'])
@Index('membership_active', { synchronize: false })
@Index('membership_joined', { synchronize: false })
@Index('membership_invited', { synchronize: false })
@Check('membership_role_check', `role IN ('team_owner', 'team_admin', 'member', 'billing_viewer', 'viewer')`)
@Check('membership_status_check', `status IN ('invited', 'active')`)
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

  /**
   * As it was sent with the invitation: what the team sees of this person until they accept. Empty where a replica of
   * the release before this column added the member.
   */
  @Column('text', { default: '' })
  name!: string;

  /**
   * Until a person has accepted, nothing of their account is shown to the team, nor to who holds the membership's key.
   */
  @Column('text', { default: 'invited' })
  status!: MemberStatus;

  /**
   * When the person has accepted; null for those who were active from the beginning, and where an earlier release took
   * it in.
   */
  @Column({ ...instant, nullable: true })
  acceptedAt!: Date | null;

  /**
   * Whether the team required a second factor when this person joined it; null until then, and where a replica of the
   * release before this column took it in.
   */
  @Column('boolean', { nullable: true })
  requiredFactorAtJoin!: boolean | null;

  /** The provider of single sign-on that made the membership, and takes it back. */
  @Column('text', { nullable: true })
  ssoProvider!: string | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
