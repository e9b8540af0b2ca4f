import type { MembershipChanged } from '@atoll/contracts/teams';
import { Column, Entity, Index, PrimaryColumn, type EntityManager } from 'typeorm';

/** The role of a user in a team, as the teams service publishes it. */
@Entity('member_role')
@Index(['userId'])
export class MemberRoleEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @PrimaryColumn('uuid')
  userId!: string;

  /** null before the member has accepted, and once they are gone. */
  @Column('text', { nullable: true })
  role!: string | null;

  /** Whether the team required a second factor when they joined: SSH keys without one do not go on its hosts. */
  @Column('boolean', { default: false })
  requiredFactor!: boolean;

  /** Of the team. Of two facts the one with the greater revision holds. */
  @Column('bigint')
  revision!: string;
}

/**
 * Keeps a role in `member_role`, in whatever order the events come; none of a team that is known as deleted, which is
 * locked until the transaction ends (see `forgetMemberRoles`). Who has not accepted their invitation has none:
 * keys of theirs on a host would tell the team that the address is known.
 *
 * Nothing is added of somebody who had no role before either: before that is nothing, or an event with which they lost
 * it, and that one is kept. So invitations that are taken back leave nothing.
 */
export async function keepMemberRole(manager: EntityManager, changed: MembershipChanged): Promise<void> {
  const { team_id, user_id, is_invited = false, required_factor_at_join = false, had_not_joined = false } = changed;
  const role = is_invited ? null : changed.role;
  await manager.query(
    `WITH known AS (SELECT status FROM team WHERE id = $1 FOR SHARE)
     INSERT INTO member_role (team_id, user_id, role, revision, required_factor)
     SELECT $1::uuid, $2::uuid, $3::text, $4::bigint, $5::boolean WHERE NOT EXISTS (SELECT FROM known WHERE status = 'deleted')
       AND ($6 OR EXISTS (SELECT FROM member_role kept WHERE kept.team_id = $1 AND kept.user_id = $2))
     ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role, revision = excluded.revision, required_factor = excluded.required_factor
     WHERE member_role.revision < excluded.revision`,
    [team_id, user_id, role, changed.revision, required_factor_at_join, role !== null || !had_not_joined],
  );
}

/** Within a transaction that has locked the row of the deleted team: removes its roles, where the service keeps any. */
export async function forgetMemberRoles(manager: EntityManager, teamId: string): Promise<void> {
  if (manager.connection.hasMetadata(MemberRoleEntity)) await manager.delete(MemberRoleEntity, { teamId });
}
