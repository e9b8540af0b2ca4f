import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { sessions, type SessionCredential } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { SignJWT, type JWTHeaderParameters, type JWTPayload } from 'jose';
import type { GatewayUnderTest } from './gateway-fixture.js';

const issuer = 'http://localhost:3000';
const audience = 'atoll';
const userId = '01890000-0000-7000-8000-00000000000b';

/** Stands in for the teams service: signs access tokens, and says which sessions live. */
export class FakeSessions {
  readonly key = generateKeyPairSync('ed25519');
  readonly #live = new Map<string, SessionCredential>();

  constructor(private readonly gateway: GatewayUnderTest) {
    const { x = '' } = this.key.publicKey.export({ format: 'jwk' });
    gateway.services.answer(sessions.keys, () => ({ issuer, audience, keys: [{ kid: 'k', x }] }));
    gateway.services.answer(sessions.verify, ({ id }) => {
      const found = this.#live.get(id);
      if (!found) throw new AppError('unauthenticated', 'The session has ended. Log in again.');
      return found;
    });
  }

  open(overrides: Partial<SessionCredential> = {}): string {
    const id = randomUUID();
    const opened_at = new Date(this.gateway.clock.nowMs).toISOString();
    const nothing = { scope: 'user', platform_admin: false, timezone: 'UTC' } as const;
    this.#live.set(id, { session_id: id, user_id: userId, opened_at, ...nothing, teams: [], ...overrides });
    return id;
  }

  end(id: string): void {
    this.#live.delete(id);
  }

  /** An access token as the teams service makes it, but for what is given. */
  token(
    sid: string,
    {
      claims = {},
      header = {},
      key,
    }: { claims?: JWTPayload; header?: Partial<JWTHeaderParameters>; key?: KeyObject } = {},
  ) {
    const now = this.gateway.clock.nowMs / 1000;
    return new SignJWT({ sid, iss: issuer, aud: audience, sub: userId, iat: now, nbf: now, exp: now + 900, ...claims })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k', typ: 'at+jwt', ...header })
      .sign(key ?? this.key.privateKey);
  }
}
