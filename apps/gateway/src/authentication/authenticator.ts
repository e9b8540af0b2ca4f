import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { digestApiKey } from '@atoll/api-keys';
import { addressAllowed, credentials, credentialsChanged, type Credential } from '@atoll/contracts';
import { AppError, isAppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { GatewaySettings } from '../gateway-options.js';
import { CredentialCache, type Verified } from './credential-cache.js';

/** Who are you: turns a key into its caller, by the teams service or by what it said at most 5 s ago. */
@Injectable()
export class Authenticator implements OnModuleInit, OnApplicationShutdown {
  readonly #cache: CredentialCache;
  #stopListening: () => void = () => undefined;

  constructor(
    private readonly rpc: Rpc,
    private readonly settings: GatewaySettings,
  ) {
    this.#cache = new CredentialCache((digest) => this.#lookUp(digest), settings.now);
  }

  onModuleInit(): void {
    this.#stopListening = this.rpc.listen(credentialsChanged, ({ user_id }) => this.forget(user_id));
  }

  onApplicationShutdown(): void {
    this.#stopListening();
  }

  /**
   * What a well-formed key opens now. Throws `unauthenticated` for a key that is unknown, revoked or expired, and `unavailable`
   * where that cannot be found out.
   */
  async verify(key: string): Promise<Verified> {
    const verified = await this.#cache.find(digestApiKey(key, this.settings.keyPepper));
    if (verified.expiresAtMs <= this.settings.now()) throw new AppError('unauthenticated', 'The API key has expired.');
    return verified;
  }

  /** Throws `ip_not_allowed` for an address outside the key's whitelist. */
  requireAddress({ ipWhitelist }: Verified, address: string): void {
    if (addressAllowed(address, ipWhitelist)) return;
    throw new AppError('ip_not_allowed', 'The API key may not be used from this address.');
  }

  /** From now on, whoever presents a key of this user is looked up again. */
  forget(userId: string): void {
    this.#cache.evict(userId);
  }

  async #lookUp(digest: string): Promise<Verified> {
    try {
      const context = systemContext('gateway', { deadlineMs: this.settings.deadlineMs });
      return toVerified(await this.rpc.call(credentials.verify, { digest }, context));
    } catch (error) {
      if (!isAppError(error)) throw error;
      if (error.code === 'unauthenticated') throw new AppError('unauthenticated', 'The credential is not valid.');
      if (error.code !== 'unavailable' && error.code !== 'deadline_exceeded') throw error;
      const retryAfterSeconds = error.details.retryAfterSeconds ?? 1;
      throw new AppError('unavailable', 'API keys cannot be checked at the moment.', { retryAfterSeconds }, { cause: error });
    }
  }
}

function toVerified({ key_id, user_id, scope, platform_admin, timezone, teams, expiry_date, ip_whitelist }: Credential): Verified {
  return {
    caller: {
      kind: 'user',
      userId: user_id,
      keyId: key_id,
      scope,
      platformAdmin: platform_admin && scope === 'user',
      timezone,
      teams: teams.map((team) => ({ teamId: team.team_id, role: team.role })),
    },
    expiresAtMs: expiry_date === null ? Infinity : Date.parse(expiry_date),
    ipWhitelist: ip_whitelist,
  };
}
