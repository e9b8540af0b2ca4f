import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Email, Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import { CredentialTeam } from './credential.js';
import { User } from './user.js';

/** Where a log-in comes from, as the gateway sees it. */
export class SessionOrigin {
  @Text({ max: 64, description: 'The address of the client.', example: '203.0.113.9' })
  address!: string;

  @Text({ max: 64, description: 'The address, or of an IPv6 address its /64.', example: '203.0.113.9' })
  network!: string;

  @Text({
    min: 0,
    max: 200,
    description: 'The `User-Agent` of the client, cut to 200 characters.',
    example: 'Mozilla/5.0',
  })
  device!: string;
}

export class LogIn {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({ max: 256, example: 'correct horse battery staple', description: 'Password of the user.' })
  password!: string;
}

export class LogInFrom extends IntersectionType(LogIn, SessionOrigin) {}

/** The answer to a log-in, and to a refresh. */
export class LoggedIn {
  @Text({ max: 4096, description: 'A JWT that stands for the session, as `Authorization: Bearer`.' })
  access_token!: string;

  @WholeNumber({ min: 0, max: 900, description: 'Life of the access token in seconds.', example: 900 })
  expires_in!: number;

  @Nested(() => User, { description: 'User who is logged in.' })
  user!: User;
}

/** What the gateway makes the answer and the cookie of. */
export class OpenedSession extends LoggedIn {
  @Uuid()
  session_id!: string;

  @Text({ max: 256 })
  refresh_token!: string;

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Seconds after which an unused refresh token expires.',
  })
  refresh_expires_in!: number;
}

export class RefreshToken {
  @Text({ max: 256 })
  refresh_token!: string;
}

/** How the id of a refresh attempt is spelt. */
export const refreshAttemptForm = /^[A-Za-z0-9_-]{16,64}$/;
export const refreshAttemptHint = '16 to 64 letters, digits, hyphens and underscores';

export class RefreshFrom extends IntersectionType(RefreshToken, SessionOrigin) {
  @Text({
    optional: true,
    min: 16,
    max: 64,
    pattern: refreshAttemptForm,
    patternHint: refreshAttemptHint,
    description: 'Random id that the client repeats until it has the answer to this refresh.',
  })
  attempt?: string;
}

export class SessionPath {
  @Uuid()
  id!: string;
}

export class OfUser {
  @Uuid({ optional: true, description: 'Id of the user; the caller if left out.' })
  user_id?: string;
}

/** Whose session ended; null where none did. */
export class EndedSession {
  @Uuid({ nullable: true })
  user_id!: string | null;
}

export class Session {
  @Uuid()
  id!: string;

  @Instant()
  created_at!: string;

  @Instant({
    description: 'Time of the last log-in or refresh, which happens every 15 minutes at most while a page is open.',
  })
  last_used_at!: string;

  @Text({ max: 64, example: '203.0.113.9', description: 'Address of the last log-in or refresh.' })
  address!: string;

  @Text({
    min: 0,
    max: 200,
    example: 'Mozilla/5.0',
    description: 'Browser of the last log-in or refresh, by its `User-Agent`.',
  })
  device!: string;

  @Flag({ description: 'Whether this call was made with it.' })
  current!: boolean;
}

export class SessionList {
  @ListOf(() => Session, { max: 1000 })
  data!: Session[];
}

/** A public key of Ed25519 (RFC 8037). */
export class SessionKey {
  @Text({ max: 64 })
  kid!: string;

  @Text({ max: 64, description: 'Public key, base64url.' })
  x!: string;
}

/** By what a gateway verifies access tokens without a call. */
export class SessionKeys {
  @Text({ max: 2048 })
  issuer!: string;

  @Text({ max: 256 })
  audience!: string;

  @ListOf(() => SessionKey, { max: 1000 })
  keys!: SessionKey[];
}

/** What a session opens now. */
export class SessionCredential {
  @Uuid()
  session_id!: string;

  @Instant({ description: 'Instant of the log-in.' })
  opened_at!: string;

  @Uuid()
  user_id!: string;

  /**
   * `membership` while nobody has shown that the user's address is theirs: then it opens one team, as a key to it does.
   */
  @OneOf('CredentialScope', ['user', 'membership'])
  scope!: 'user' | 'membership';

  @Flag()
  platform_admin!: boolean;

  /** Of a session of the operator without the second factor that the operator’s part requires. */
  @Flag({ optional: true })
  operator_lacks_second_factor?: boolean;

  @Text({ max: 64 })
  timezone!: string;

  @ListOf(() => CredentialTeam, { max: 100_000 })
  teams!: CredentialTeam[];
}

/**
 * `keys` and `verify` are asked by the gateway alone, acting as itself, as are those that take a password or a refresh
 * token.
 */
export const sessions = contract('teams.sessions', {
  logIn: operation(LogInFrom, OpenedSession),
  refresh: operation(RefreshFrom, OpenedSession),
  logOut: operation(RefreshToken, EndedSession),
  keys: operation(Nothing, SessionKeys),
  verify: operation(SessionPath, SessionCredential),
  list: operation(Nothing, SessionList),
  end: operation(SessionPath, Nothing),
  endAll: operation(OfUser, Nothing),
});
