import { messageOf } from '@atoll/errors';
import { createPrivateKey, generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto';
import type { SessionKeys } from '@atoll/contracts/teams';
import { takeTurn, Transactions } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { Injectable, Logger } from '@nestjs/common';
import { SignJWT } from 'jose';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { SigningKeyEntity, signingKeyPurpose } from '../model/signing-key.entity.js';

/** A key signs for so long, and verifies for a day more: longer than any access token lives. */
const signsForDays = 30;
const verifiesForDays = signsForDays + 1;
/** How long a replica caches the keys, since an operator may have removed one. */
const rereadAfterMs = 5_000;

const audience = 'atoll';

interface Claims {
  userId: string;
  sessionId: string;
  lifeSeconds: number;
}

interface KnownKeys {
  /** By `performance.now()`. */
  readAtMs: number;
  signing: { kid: string; privateKey: KeyObject };
  all: SessionKeys['keys'];
}

/**
 * The keys by which access tokens are signed: in the database, sealed, replaced by time. Gateways fetch the public
 * ones.
 */
@Injectable()
export class SigningKeys {
  private readonly logger = new Logger('Sessions');
  private readonly sealer: Sealer;
  private known?: KnownKeys;
  private reading: Promise<KnownKeys> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly settings: TeamsSettings,
  ) {
    this.sealer = new Sealer(settings.sealKeys);
  }

  /**
   * An access token (RFC 9068, as far as it goes): who, by which session, for how long. Nothing that may change
   * meanwhile.
   */
  async sign({ userId, sessionId, lifeSeconds }: Claims): Promise<string> {
    const { signing } = await this.keys();
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ sid: sessionId })
      .setProtectedHeader({ alg: 'EdDSA', kid: signing.kid, typ: 'at+jwt' })
      .setIssuer(this.settings.publicUrl)
      .setAudience(audience)
      .setSubject(userId)
      .setIssuedAt(now)
      .setNotBefore(now)
      .setExpirationTime(now + lifeSeconds)
      .sign(signing.privateKey);
  }

  /** What verifies access tokens now. */
  async list(): Promise<SessionKeys> {
    return { issuer: this.settings.publicUrl, audience, keys: (await this.findOrCreate()).all };
  }

  private async keys(): Promise<KnownKeys> {
    if (this.known && performance.now() - this.known.readAtMs < rereadAfterMs) return this.known;
    // Those who sign while keys are read share the reading. Whoever verifies reads anew: the key may be younger than a
    // reading under way.
    this.reading ??= this.findOrCreate().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async findOrCreate(): Promise<KnownKeys> {
    this.known = (await this.find(this.dataSource)) ?? (await this.create());
    return this.known;
  }

  /** Undefined where no key signs that this replica can open. */
  private async find(db: Pick<EntityManager, 'query'>): Promise<KnownKeys | undefined> {
    const rows = await db.query<{ kid: string; sealed: string; x: string; signs: boolean }[]>(
      `SELECT kid, sealed, x, created_at > now() - interval '${signsForDays} days' AS signs FROM signing_key
       WHERE created_at > now() - interval '${verifiesForDays} days' ORDER BY created_at DESC`,
    );
    for (const { kid, sealed, signs } of rows) {
      const privateKey = signs ? this.open(kid, sealed) : undefined;
      if (privateKey)
        return {
          readAtMs: performance.now(),
          signing: { kid, privateKey },
          all: rows.map((row) => ({ kid: row.kid, x: row.x })),
        };
    }
    return undefined;
  }

  private open(kid: string, sealed: string): KeyObject | undefined {
    try {
      return createPrivateKey({ key: this.sealer.open(sealed, signingKeyPurpose(kid)), format: 'der', type: 'pkcs8' });
    } catch (error) {
      this.logger.warn(`Signing key ${kid} cannot be decrypted; using another: ${messageOf(error)}`);
      return undefined;
    }
  }

  private async create(): Promise<KnownKeys> {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const kid = randomBytes(9).toString('base64url');
    const sealed = this.sealer.seal(privateKey.export({ format: 'der', type: 'pkcs8' }), signingKeyPurpose(kid));
    const { x = '' } = publicKey.export({ format: 'jwk' });
    const theirs = await this.transactions.run(async (manager) => {
      // A replica of an earlier release takes another lock, and may make a second key meanwhile: both verify.
      await takeTurn(manager, 'signing keys');
      // Another replica may have made one while this one waited.
      const made = await this.find(manager);
      if (made) return made;
      await manager.insert(SigningKeyEntity, { kid, sealed, x });
      await manager.query(`DELETE FROM signing_key WHERE created_at < now() - interval '${verifiesForDays} days'`);
      return undefined;
    });
    if (theirs) return theirs;
    this.logger.log({ message: 'Created a new key that signs access tokens', kid });
    const found = await this.find(this.dataSource);
    if (!found) throw new Error('The signing key that was stored just now is not there.');
    return found;
  }
}
