import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { sessions } from '@atoll/contracts/teams';
import { AppError, isAppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { decodeProtectedHeader, errors, jwtVerify } from 'jose';
import { GatewaySettings } from '../gateway-options.js';

/** The content of an access token. Whether its session is alive, and what it may do, is checked elsewhere. */
export interface AccessClaims {
  sessionId: string;
  /** Epoch milliseconds. */
  expiresAtMs: number;
}

interface Remembered extends AccessClaims {
  /** The key by which it was verified. */
  kid: string;
}

interface KnownKeys {
  /** When they were asked for: what they say may be as old as that. */
  asOfMs: number;
  issuer: string;
  audience: string;
  byId: ReadonlyMap<string, KeyObject>;
}

const form = /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/;
const maxLength = 4_096;
const sessionIdForm = /^[0-9a-f-]{36}$/;
/** Keys that a token names and nobody knows are not asked for more often. */
const refetchAfterMs = 5_000;
/** The longest that a key is believed which the teams service does not have any more. */
const maxKeysAgeMs = 30_000;
const maxRemembered = 10_000;
const algorithm = 'EdDSA';

/** Whether a credential has the form of a JWT, so that it is not one of an API key. */
export function isSessionToken(text: string): boolean {
  return text.length <= maxLength && form.test(text);
}

/**
 * Verifies access tokens without a call: by the public keys of the teams service as of the last half minute, and once a
 * token.
 */
@Injectable()
export class SessionTokens {
  readonly #remembered = new Map<string, Remembered>();
  #keys: KnownKeys | undefined;
  #fetching: Promise<KnownKeys> | undefined;

  constructor(
    private readonly rpc: Rpc,
    private readonly settings: GatewaySettings,
  ) {}

  /**
   * What a token says that was verified before, has not expired, and whose key is one still. Throws `unavailable` as
   * `verify`.
   */
  async remembered(token: string): Promise<AccessClaims | undefined> {
    const digest = digestOf(token);
    const claims = this.#remembered.get(digest);
    if (!claims || claims.expiresAtMs <= this.settings.now()) return undefined;
    if ((await this.#current()).byId.has(claims.kid)) return claims;
    this.#remembered.delete(digest);
    return undefined;
  }

  /**
   * Throws `unauthenticated` for a token that is not one of this platform, or not one now; `unavailable` where its key
   * cannot be fetched.
   */
  async verify(token: string): Promise<AccessClaims> {
    const { kid, issuer, audience, key } = await this.#keyOf(token);
    try {
      const { payload } = await jwtVerify(token, key, {
        issuer,
        audience,
        algorithms: [algorithm],
        typ: 'at+jwt',
        requiredClaims: ['sub', 'sid', 'exp', 'nbf'],
        currentDate: new Date(this.settings.now()),
        // Two machines of one platform may differ by so many seconds.
        clockTolerance: 5,
      });
      const { sid, exp = 0 } = payload;
      if (typeof sid !== 'string' || !sessionIdForm.test(sid)) throw notValid();
      return this.#remember(token, { kid, sessionId: sid, expiresAtMs: exp * 1000 });
    } catch (error) {
      if (error instanceof errors.JWTExpired)
        throw new AppError('unauthenticated', 'The access token has expired. Refresh it.');
      if (error instanceof errors.JOSEError) throw notValid();
      throw error;
    }
  }

  /** The key that the token names, if its header names one in the one way that this platform does. */
  async #keyOf(token: string): Promise<{ kid: string; issuer: string; audience: string; key: KeyObject }> {
    const kid = kidIn(token);
    let keys = await this.#current();
    if (!keys.byId.has(kid) && this.settings.now() - keys.asOfMs > refetchAfterMs) keys = await this.#fetch();
    const key = keys.byId.get(kid);
    if (!key) throw notValid();
    return { kid, issuer: keys.issuer, audience: keys.audience, key };
  }

  /** Keys from the future are not current either: the clock was set back. */
  async #current(): Promise<KnownKeys> {
    const ageMs = this.#keys && this.settings.now() - this.#keys.asOfMs;
    return this.#keys && ageMs !== undefined && ageMs >= 0 && ageMs < maxKeysAgeMs ? this.#keys : this.#fetch();
  }

  #fetch(): Promise<KnownKeys> {
    this.#fetching ??= this.#askForKeys().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #askForKeys(): Promise<KnownKeys> {
    const asOfMs = this.settings.now();
    try {
      const { issuer, audience, keys } = await this.rpc.call(
        sessions.keys,
        {},
        systemContext('gateway', { deadlineMs: this.settings.deadlineMs }),
      );
      const byId = new Map(
        keys.map(({ kid, x }) => [kid, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })]),
      );
      return (this.#keys = { asOfMs, issuer, audience, byId });
    } catch (error) {
      if (!isAppError(error)) throw error;
      throw new AppError(
        'unavailable',
        'Sessions cannot be checked at the moment.',
        { retryAfterSeconds: 1 },
        { cause: error },
      );
    }
  }

  #remember(token: string, claims: Remembered): AccessClaims {
    this.#remembered.set(digestOf(token), claims);
    for (const [digest, { expiresAtMs }] of this.#remembered) {
      if (expiresAtMs > this.settings.now() && this.#remembered.size <= maxRemembered) break;
      this.#remembered.delete(digest);
    }
    return claims;
  }
}

/**
 * Where a header names a key in other ways as well (`jku`, `jwk`, `x5u`), or another algorithm, nothing is looked for.
 */
function kidIn(token: string): string {
  try {
    const { alg, kid, typ, ...others } = decodeProtectedHeader(token);
    if (alg === algorithm && typ === 'at+jwt' && kid !== undefined && Object.keys(others).length === 0) return kid;
  } catch {
    // Not a header at all.
  }
  throw notValid();
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

function notValid(): AppError {
  return new AppError('unauthenticated', 'The access token is not valid here. Log in again.');
}
