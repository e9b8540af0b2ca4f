import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { digestApiKey } from '@atoll/api-keys';
import { addressAllowed, whitelistRanges, type Operation, type UserCaller } from '@atoll/contracts';
import {
  credentials,
  credentialsChanged,
  sessions,
  type Credential,
  type CredentialTeam,
  type SessionCredential,
} from '@atoll/contracts/teams';
import { AppError, isAppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { FairSemaphore, withPatience } from '@atoll/waiting';
import { GatewaySettings } from '../gateway-options.js';
import { policiesOf } from '../rate-limits/limits.js';
import { unknownAddress } from '../http/client-address.js';
import { AskAgain } from './ask-again.js';
import { CredentialCache, type Verified } from './credential-cache.js';
import { RecentSet } from './recent-set.js';
import { isSessionToken, SessionTokens, type AccessClaims } from './session-tokens.js';

/** What a failed authentication costs the address it comes from. */
export interface Attempt {
  /** The address's network; see `networkOf`. */
  network: string;
  /** Takes one token for this request, once. Throws `too_many_requests` where there is none. */
  charge(): Promise<void>;
  /** Returns the token: the authentication did not fail. */
  refund(): Promise<void>;
}

/** A key that was verified in this time is looked up again whatever else comes from its address. */
const trustedFor = { maxAgeMs: 24 * 60 * 60 * 1000, maxEntries: 100_000 };
/** A digest that no live key has is not asked for again in this time. */
const refusedFor = { maxAgeMs: 1_000, maxEntries: 10_000 };

/** Look-ups of unknown keys: few at once, so that invented ones leave the teams service to callers who are known. */
const unknownKeys = { maxWaiting: 10_000, patienceMs: 2_000 };
const unknownAtOnce = 4;
/**
 * So many of them from one network; no more than its tokens, or look-ups of good keys would take them from each other.
 */
const perNetwork = 4;

/** A session that has ended does not come back; its access tokens are worth nothing after this time in any case. */
const endedFor = { maxAgeMs: 15 * 60_000, maxEntries: 10_000 };

/** Of look-ups. One that is answered, if only that the service is busy, is not asked again. */
const asking = { silentMs: 1_000, most: 32 };

/**
 * Identifies callers: turns a key or an access token into its caller, by the teams service or by what it said at most 5
 * s ago.
 */
@Injectable()
export class Authenticator implements OnModuleInit, OnApplicationShutdown {
  readonly #asking = new AskAgain(asking);
  readonly #cache: CredentialCache;
  readonly #sessions: CredentialCache;
  readonly #ended: RecentSet;
  readonly #trusted: RecentSet;
  readonly #refused: RecentSet;
  readonly #unknown = new FairSemaphore({ ...unknownKeys, permits: unknownAtOnce }, () => unavailable(1));
  readonly #networks: FairSemaphore;
  #stopListening: () => void = () => undefined;

  constructor(
    private readonly rpc: Rpc,
    private readonly accessTokens: SessionTokens,
    private readonly settings: GatewaySettings,
  ) {
    const { now, limits } = settings;
    const shareMs = settings.deadlineMs / 2;
    this.#cache = new CredentialCache((digest) => this.#lookUp(digest), { now, shareMs });
    this.#sessions = new CredentialCache((id) => this.#lookUpSession(id), { now, shareMs });
    this.#ended = new RecentSet(now, endedFor);
    this.#trusted = new RecentSet(now, trustedFor);
    this.#refused = new RecentSet(now, refusedFor);
    const tokens = limits ? policiesOf(limits).authFailures.capacity : perNetwork;
    const permitsPerKey = Math.min(perNetwork, tokens);
    this.#networks = new FairSemaphore({ ...unknownKeys, permitsPerKey }, () => unavailable(1));
  }

  onModuleInit(): void {
    this.#stopListening = this.rpc.listen(credentialsChanged, ({ user_id }) => this.forget(user_id));
  }

  onApplicationShutdown(): void {
    this.#stopListening();
  }

  /**
   * The caller that a credential of either form identifies now. Throws as `verifyKey`, and `unavailable` where waiting
   * for a place and for look-ups takes longer than a request may in all. The look-ups go on, for others that joined
   * them.
   */
  async verify(credential: string, attempt: Attempt): Promise<Verified> {
    const verifying = isSessionToken(credential)
      ? this.#verifySession(credential, attempt)
      : this.#verifyKey(credential, attempt);
    const verified = await withPatience(verifying, this.settings.deadlineMs, null);
    if (!verified) throw unavailable(1);
    return verified;
  }

  /**
   * The caller that a well-formed key identifies now. A key that this gateway did not verify lately is charged to its
   * address before it is looked up, and refunded where it is good. Throws `unauthenticated` for a key that is unknown,
   * revoked or expired, `too_many_requests` where the address may not try any more, and `unavailable` where the teams
   * service does not answer.
   */
  async #verifyKey(key: string, attempt: Attempt): Promise<Verified> {
    const digest = digestApiKey(key, this.settings.keyPepper);
    const verified = this.#cache.fresh(digest) ?? (await this.#find(digest, attempt));
    if (verified.expiresAtMs > this.settings.now()) return verified;
    this.#trusted.delete(digest);
    throw new AppError('unauthenticated', 'The API key has expired.');
  }

  /** Throws `ip_not_allowed` for an address outside the key's whitelist, and names it: a proxy may have changed it. */
  requireAddress({ ranges }: Verified, address: string): void {
    if (addressAllowed(address, ranges)) return;
    const seen = address === unknownAddress ? 'an address that cannot be read' : `the address ${address}`;
    throw new AppError('ip_not_allowed', `The API key may not be used from ${seen}.`);
  }

  /** From now on every key and session of this user is looked up again. */
  forget(userId: string): void {
    this.#cache.evict(userId);
    this.#sessions.evict(userId);
  }

  async #verifySession(token: string, attempt: Attempt): Promise<Verified> {
    const { sessionId, expiresAtMs } =
      (await this.accessTokens.remembered(token)) ?? (await this.#verifyToken(token, attempt));
    if (this.#ended.has(sessionId)) throw sessionEnded();
    const verified = await this.#sessions.find(sessionId);
    return { ...verified, expiresAtMs };
  }

  /** A token that is new here is charged to its address until its signature is found good. */
  async #verifyToken(token: string, attempt: Attempt): Promise<AccessClaims> {
    await attempt.charge();
    try {
      const claims = await this.accessTokens.verify(token);
      await attempt.refund();
      return claims;
    } catch (error) {
      if (!isUnauthenticated(error)) await attempt.refund();
      throw error;
    }
  }

  async #lookUpSession(id: string): Promise<Verified> {
    const credential = await this.#ask(sessions.verify, { id });
    if (credential) return toVerifiedSession(credential);
    this.#ended.add(id);
    throw sessionEnded();
  }

  #find(digest: string, attempt: Attempt): Promise<Verified> {
    if (this.#trusted.has(digest)) return this.#findAndNote(digest);
    return this.#networks.run(() => this.#findUnknown(digest, attempt), { key: attempt.network });
  }

  async #findUnknown(digest: string, attempt: Attempt): Promise<Verified> {
    // Another request with the same key may have been first.
    if (this.#trusted.has(digest)) return this.#findAndNote(digest);
    await attempt.charge();
    if (this.#refused.has(digest)) throw notValid();
    try {
      const verified = await this.#unknown.run(() => this.#findAndNote(digest));
      await attempt.refund();
      return verified;
    } catch (error) {
      if (!isUnauthenticated(error)) await attempt.refund();
      throw error;
    }
  }

  async #findAndNote(digest: string): Promise<Verified> {
    try {
      const verified = await this.#cache.find(digest);
      this.#trusted.add(digest);
      return verified;
    } catch (error) {
      if (isUnauthenticated(error)) {
        this.#trusted.delete(digest);
        this.#refused.add(digest);
      }
      throw error;
    }
  }

  async #lookUp(digest: string): Promise<Verified> {
    const credential = await this.#ask(credentials.verify, { digest });
    if (!credential) throw notValid();
    return toVerified(credential);
  }

  /**
   * What the teams service says of a credential, undefined where it knows none. It is asked again where it is silent: a
   * look-up changes nothing, and the second may reach another replica.
   */
  async #ask<Input extends object, Output extends object>(
    operation: Operation<Input, Output>,
    input: Input,
  ): Promise<Output | undefined> {
    const context = systemContext('gateway', { deadlineMs: this.settings.deadlineMs });
    const ask = () =>
      this.rpc.call(operation, input, context).catch((error: unknown) => {
        if (isUnauthenticated(error)) return undefined;
        throw error;
      });
    try {
      return await this.#asking.run(ask);
    } catch (error) {
      if (!isAppError(error) || (error.code !== 'unavailable' && error.code !== 'deadline_exceeded')) throw error;
      throw unavailable(error.details.retryAfterSeconds ?? 1, error);
    }
  }
}

function isUnauthenticated(error: unknown): boolean {
  return isAppError(error) && error.code === 'unauthenticated';
}

function sessionEnded(): AppError {
  return new AppError('unauthenticated', 'The session has ended. Log in again.');
}

function notValid(): AppError {
  return new AppError('unauthenticated', 'The API key is not valid: it is unknown or was revoked.');
}

function unavailable(retryAfterSeconds: number, cause?: unknown): AppError {
  return new AppError('unavailable', 'Credentials cannot be checked at the moment.', { retryAfterSeconds }, { cause });
}

function toVerified({
  key_id,
  user_id,
  scope,
  platform_admin,
  timezone,
  teams,
  expiry_date,
  ip_whitelist,
  held_by: heldBy,
}: Credential): Verified {
  return {
    caller: {
      kind: 'user',
      userId: user_id,
      credential: { kind: 'key', id: key_id },
      scope,
      platformAdmin: platform_admin && scope === 'user',
      timezone,
      teams: toCallerTeams(teams),
      ...(heldBy !== undefined && { heldBy }),
    },
    expiresAtMs: expiry_date === null ? Infinity : Date.parse(expiry_date),
    ranges: whitelistRanges(ip_whitelist),
  };
}

function toVerifiedSession(credential: SessionCredential): Verified {
  const {
    session_id,
    opened_at: openedAt,
    user_id,
    scope,
    platform_admin,
    operator_lacks_second_factor,
    timezone,
    teams,
  } = credential;
  return {
    caller: {
      kind: 'user',
      userId: user_id,
      credential: { kind: 'session', id: session_id, openedAt },
      scope,
      platformAdmin: platform_admin && scope === 'user',
      ...(operator_lacks_second_factor === true && { lacksOperatorFactor: true }),
      timezone,
      teams: toCallerTeams(teams),
    },
    expiresAtMs: Infinity,
    ranges: null,
  };
}

function toCallerTeams(teams: readonly CredentialTeam[]): UserCaller['teams'] {
  return teams.map(({ team_id: teamId, role, lacks_second_factor: lacksSecondFactor = false }) => ({
    teamId,
    role,
    ...(lacksSecondFactor && { lacksSecondFactor }),
  }));
}
