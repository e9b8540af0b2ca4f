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

  /** Of the team. Of two facts the one with the greater revision holds. */
  @Column('bigint')
  revision!: string;
}

/**
 * Keeps a role in `member_role`, in whatever order the events come. Who has not accepted their invitation has none:
 * keys of theirs on a host would tell the team that the address is known.
 */
export async function keepMemberRole(
  manager: EntityManager,
  { team_id, user_id, role, is_invited = false, revision }: MembershipChanged,
): Promise<void> {
  await manager.query(
    `INSERT INTO member_role (team_id, user_id, role, revision) VALUES ($1, $2, $3, $4)
     ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role, revision = excluded.revision
     WHERE member_role.revision < excluded.revision`,
    [team_id, user_id, is_invited ? null : role, revision],
  );
}
