import type { CallContext } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamChanges } from '../changes/team-changes.js';
import { removeFactors } from '../model/factors.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { SessionsService } from '../sessions/session.service.js';

/** The teams that the user `$1` has joined, where somebody else than the owner of the address may have done it. */
const joinedQuery = `
  SELECT t.id FROM "user" u JOIN membership m ON m.user_id = u.id AND m.status = 'active'
  JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL
  WHERE u.id = $1 AND u.verified_at IS NULL AND u.confined_to_team_id IS NOT NULL ORDER BY t.id`;

/** Those to the team in which alone the user `$1` acts: whoever was shown the link may know each of them. */
const revokeKeysQuery = `
  UPDATE api_key k SET revoked_at = now() FROM "user" u
  WHERE u.id = $1 AND k.user_id = u.id AND k.team_id = u.confined_to_team_id AND k.revoked_at IS NULL`;

/**
 * The owner of an address takes over an account that was made by a link which does not verify the address. Everything
 * that somebody else may have put on it is removed.
 */
@Injectable()
export class AccountTakeover {
  constructor(
    private readonly changes: TeamChanges,
    private readonly sessions: SessionsService,
  ) {}

  /** Within a transaction that has not locked the user yet: whoever joins a team locks it before its user. */
  async lockTeams(manager: EntityManager, userId: string): Promise<void> {
    await manager.query(`${joinedQuery} FOR NO KEY UPDATE OF t`, [userId]);
  }

  /**
   * Of a user who is locked and still confined: removes password, factors, sessions and the keys to that team, and
   * makes each membership an invitation again, for the owner to accept. Publish `credentialsChanged` after its commit.
   */
  async run(manager: EntityManager, userId: string, context: CallContext): Promise<void> {
    await removeFactors(manager, userId);
    await manager.query('DELETE FROM password WHERE user_id = $1', [userId]);
    await this.sessions.endOthers(manager, userId);
    await manager.query(revokeKeysQuery, [userId]);
    for (const { id: teamId } of await manager.query<{ id: string }[]>(joinedQuery, [userId])) {
      const team = await this.changes.lock(manager, teamId);
      const invited = { status: 'invited', acceptedAt: null, requiredFactorAtJoin: null } as const;
      await manager.update(MembershipEntity, { teamId, userId }, invited);
      await this.changes.saveMember(manager, team, userId, context, { hadJoined: true });
    }
  }
}
