import { createApiKey, digestApiKey, maskApiKey } from '@atoll/api-keys';
import type { Caller } from '@atoll/contracts';
import { databaseNowMs, newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { IsNull, Not, Raw, type EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { ApiKeyEntity } from '../model/api-key.entity.js';
import { viewerOf } from './key-viewer.js';

/** Replaced keys of one holder that still work. Each further key changes all of them. */
export const mostInGrace = 20;

/** The operator's stay: the next start would take a revoked `ATOLL_ADMIN_KEY` that is not known for a new one. */
const endedRemoval = `DELETE FROM api_key WHERE user_id = $1 AND team_id IS NOT DISTINCT FROM $2::uuid
  AND (revoked_at IS NOT NULL OR expiry_date <= now())
  AND (team_id IS NOT NULL OR NOT (SELECT platform_admin FROM "user" WHERE id = $1))`;

/** Whose key: of one membership, or of the user as a whole. */
interface KeyHolder {
  userId: string;
  teamId: string | null;
}

interface NewKey extends KeyHolder {
  /** null: never. */
  expiryDate: Date | null;
  ipWhitelist: string;
  issuedByOwner?: boolean;
  lacksSecondFactor?: boolean;
  boundUntil?: Date | null;
}

/**
 * Makes, replaces and revokes keys, within the transaction of whoever asks. A key in full is returned once and kept
 * nowhere.
 */
@Injectable()
export class ApiKeysService {
  constructor(private readonly settings: TeamsSettings) {}

  private digest(key: string): Buffer {
    return Buffer.from(digestApiKey(key, this.settings.keyPepper), 'hex');
  }

  /** The row of a key, live or ended; null for one that is not known under the present pepper. */
  find(manager: EntityManager, key: string): Promise<ApiKeyEntity | null> {
    return manager.findOneBy(ApiKeyEntity, { digest: this.digest(key) });
  }

  /** Stores the keys and returns each in full, in their order. `caller` is shown them; if left out, their users are. */
  async issue(
    manager: EntityManager,
    newKeys: readonly NewKey[],
    { caller, createKey = createApiKey }: { caller?: Caller; createKey?: () => string } = {},
  ): Promise<string[]> {
    const viewer = caller ? await viewerOf(manager, caller) : null;
    const issued = newKeys.map((newKey) => ({ newKey, key: createKey() }));
    const rows = issued.map(({ newKey, key }) => ({
      ...newKey,
      shownTo: viewer === newKey.userId ? null : viewer,
      id: newId(),
      digest: this.digest(key),
      mask: maskApiKey(key),
    }));
    await manager.insert(ApiKeyEntity, rows);
    return issued.map(({ key }) => key);
  }

  /**
   * Lets the holder's live keys work for the grace, never past their own expiry; without a grace they end at once.
   * Those that had ended before are removed. Throws `conflict` where `mostInGrace` would work beside the next one.
   */
  async retire(manager: EntityManager, holder: KeyHolder, graceSeconds: number): Promise<void> {
    await manager.query(endedRemoval, [holder.userId, holder.teamId]);
    if (graceSeconds === 0) return this.revoke(manager, holder);
    const inGrace = {
      ...liveKeysOf(holder),
      replacedAt: Not(IsNull()),
      expiryDate: Raw((column) => `${column} > now()`),
    };
    if ((await manager.countBy(ApiKeyEntity, inGrace)) >= mostInGrace) throw tooManyInGrace();
    await manager.update(ApiKeyEntity, liveKeysOf(holder), {
      expiryDate: () => `LEAST(expiry_date, now() + interval '${Math.trunc(graceSeconds)} seconds')`,
      replacedAt: () => 'coalesce(replaced_at, now())',
    });
  }

  async revoke(manager: EntityManager, holder: KeyHolder): Promise<void> {
    await manager.update(ApiKeyEntity, liveKeysOf(holder), { revokedAt: () => 'now()' });
  }

  /** Ends keys that somebody who never was team_owner may know. */
  async revokeUnlessIssuedByOwner(manager: EntityManager, holder: KeyHolder): Promise<void> {
    await manager.update(ApiKeyEntity, { ...liveKeysOf(holder), issuedByOwner: false }, { revokedAt: () => 'now()' });
  }

  /** The newest key, live or ended. */
  last(manager: EntityManager, { userId, teamId }: KeyHolder): Promise<ApiKeyEntity | null> {
    return manager.findOne(ApiKeyEntity, {
      where: { userId, teamId: teamId ?? IsNull() },
      order: { createdAt: 'DESC' },
    });
  }

  /** The key which the next one replaces. */
  async current(manager: EntityManager, holder: KeyHolder): Promise<ApiKeyEntity | null> {
    const last = await this.last(manager, holder);
    return last && isLive(last, await databaseNowMs(manager)) ? last : null;
  }

  /** Ends every key to a team. */
  async revokeTeam(manager: EntityManager, teamId: string): Promise<void> {
    await manager.update(ApiKeyEntity, { teamId, revokedAt: IsNull() }, { revokedAt: () => 'now()' });
  }
}

/** `nowMs`: the database's. A key ends at its expiry, not after it. */
export function isLive({ revokedAt, expiryDate }: ApiKeyEntity, nowMs: number): boolean {
  return revokedAt === null && (expiryDate === null || expiryDate.getTime() > nowMs);
}

function liveKeysOf({ userId, teamId }: KeyHolder) {
  return { userId, teamId: teamId ?? IsNull(), revokedAt: IsNull() };
}

function tooManyInGrace(): AppError {
  return new AppError(
    'conflict',
    `${mostInGrace} replaced keys still work, and no more may. Leave out grace_seconds to end them all, or retry when one has ended.`,
  );
}
