import { teamRoles, type TeamRole } from '../caller.js';
import { broadcast, contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, OneOf, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';

/** Only the digest of a key crosses the bus: HMAC-SHA-256 under the pepper, in hexadecimal. */
export class KeyDigest {
  @Text({ min: 64, max: 64, pattern: /^[0-9a-f]+$/, patternHint: 'hexadecimal' })
  digest!: string;
}

export class CredentialTeam {
  @Uuid()
  team_id!: string;

  @OneOf('TeamRole', teamRoles)
  role!: TeamRole;

  /** The team requires a second factor, and the session, or the key of its user as a whole, lacks one there. */
  @Flag({ optional: true })
  lacks_second_factor?: boolean;
}

/** What a key opens. Expiry and addresses are checked by the gateway on every request, cached or not. */
export class Credential {
  @Uuid()
  key_id!: string;

  @Uuid()
  user_id!: string;

  @OneOf('KeyScope', ['user', 'membership'])
  scope!: 'user' | 'membership';

  @Flag()
  platform_admin!: boolean;

  @Text({ max: 64 })
  timezone!: string;

  /** All of the user's teams; for a membership key that one; none for the operator, who may do everything in each. */
  @ListOf(() => CredentialTeam, { max: 100_000 })
  teams!: CredentialTeam[];

  @Instant({ nullable: true })
  expiry_date!: string | null;

  @Text({ min: 0, max: 4096 })
  ip_whitelist!: string;

  /** Who was shown the key of somebody they invited, until that person has accepted. Left out: its user holds it. */
  @Uuid({ optional: true })
  held_by?: string;
}

/** Which pepper a process has, without revealing it: `fingerprintOfPepper` of libs/api-keys, in hexadecimal. */
export class PepperFingerprint {
  @Text({ min: 64, max: 64, pattern: /^[0-9a-f]+$/, patternHint: 'hexadecimal' })
  fingerprint!: string;
}

export class PepperComparison {
  @Flag()
  is_same!: boolean;
}

/**
 * Asked by the gateway alone, acting as itself. `verify` answers `unauthenticated` for a digest that no live key has;
 * `comparePepper` whether the teams service has the pepper of the asker, without which no digest is found.
 */
export const credentials = contract('teams.credentials', {
  verify: operation(KeyDigest, Credential),
  comparePepper: operation(PepperFingerprint, PepperComparison),
});

class CredentialsChanged {
  /** Whoever holds a credential of these users must look again. */
  @Uuid()
  user_id!: string;
}

/**
 * Told after commit whenever something a gateway may have cached about a user has changed: keys, roles, teams, zone.
 */
export const credentialsChanged = broadcast('teams.credentials_changed', CredentialsChanged);
