import { fingerprintOfPepper } from '@atoll/api-keys';
import { requireService, type CallContext } from '@atoll/contracts';
import type {
  Credential,
  CredentialTeam,
  KeyDigest,
  PepperComparison,
  PepperFingerprint,
} from '@atoll/contracts/teams';
import { ReservedStatements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { openMemberships } from '../changes/most-teams.js';
import { TeamsSettings } from '../teams-settings.js';
import { heldBy, joinInvited } from './key-viewer.js';

interface CredentialRow extends Omit<Credential, 'expiry_date' | 'scope' | 'held_by'> {
  held_by: string | null;
  team_id: string | null;
  expiry_date: Date | null;
}

/**
 * SQL: whether the key `k` lacks the second factor that the team `t` of the membership `m` requires. A key of the user
 * as a whole reaches no further than the session that made it could. An invitation keeps nobody from making keys, so no
 * such key opens a team that requires a factor before its user has joined; and one that was made without a factor opens
 * none that required it when the user joined. A team that begins to require a factor stays open to the keys of those
 * who have joined before.
 */
const lacksSecondFactor = `k.team_id IS NULL AND t.require_second_factor AND (m.status = 'invited' OR
  k.lacks_second_factor AND m.required_factor_at_join IS DISTINCT FROM false)`;

/**
 * One look-up in the unique index of digests, however many keys there are; the rest hangs on the row that it finds. The
 * operator may do everything in every team and often owns most of them: those are left out, since the answer travels
 * with each call.
 */
export const credentialQuery = `
  SELECT k.id AS key_id, k.user_id, k.team_id, k.expiry_date, k.ip_whitelist, u.platform_admin,
    CASE WHEN invited.id IS NULL THEN u.timezone ELSE 'UTC' END AS timezone, ${heldBy} AS held_by,
    (SELECT COALESCE(json_agg(json_build_object('team_id', m.team_id, 'role', m.role,
        'lacks_second_factor', ${lacksSecondFactor}) ORDER BY m.created_at, m.id), '[]')
      FROM (
        SELECT * FROM (${openMemberships}) open WHERE k.team_id IS NULL AND NOT u.platform_admin
        UNION ALL
        SELECT * FROM membership WHERE team_id = k.team_id AND user_id = k.user_id
      ) m JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL) AS teams
  FROM api_key k JOIN "user" u ON u.id = k.user_id ${joinInvited}
  WHERE k.digest = $1 AND k.revoked_at IS NULL`;

/** Every request of every team waits for this, so it has connections that nothing else can take. */
@Injectable()
export class CredentialsService {
  constructor(
    private readonly statements: ReservedStatements,
    private readonly settings: TeamsSettings,
  ) {}

  comparePepper({ fingerprint }: PepperFingerprint, { caller }: CallContext): PepperComparison {
    requireService(caller);
    return { is_same: fingerprintOfPepper(this.settings.keyPepper).toString('hex') === fingerprint };
  }

  async verify({ digest }: KeyDigest, { caller }: CallContext): Promise<Credential> {
    requireService(caller);
    const [row] = await this.statements.query<CredentialRow>(credentialQuery, [Buffer.from(digest, 'hex')]);
    const isMembership = row?.team_id != null;
    if (!row || (isMembership && row.teams.length === 0))
      throw new AppError('unauthenticated', 'The API key is not known, or was revoked.');
    return {
      key_id: row.key_id,
      user_id: row.user_id,
      scope: isMembership ? 'membership' : 'user',
      // Whoever may name the operator among the members of a team must not gain a platform by it.
      platform_admin: row.platform_admin && !isMembership,
      timezone: row.timezone,
      teams: row.teams satisfies CredentialTeam[],
      expiry_date: row.expiry_date?.toISOString() ?? null,
      ip_whitelist: row.ip_whitelist,
      ...(row.held_by !== null && { held_by: row.held_by }),
    };
  }
}
