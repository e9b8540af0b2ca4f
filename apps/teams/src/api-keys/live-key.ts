import type { UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { IsNull, Not, type EntityManager } from 'typeorm';
import { ApiKeyEntity } from './api-key.entity.js';

/** A gateway may go on with a key for some seconds after it was revoked: such a key must not get itself a successor. */
export async function requireLiveKey(manager: EntityManager, { keyId }: UserCaller): Promise<void> {
  const isLive = await manager.existsBy(ApiKeyEntity, { id: keyId, revokedAt: IsNull() });
  if (!isLive) throw new AppError('unauthenticated', 'The API key was revoked.');
}

/** A key that was replaced lives out its grace. Whoever holds it still must not replace its successor in turn. */
export async function requireUnreplacedKey(manager: EntityManager, { keyId }: UserCaller): Promise<void> {
  const isReplaced = await manager.existsBy(ApiKeyEntity, { id: keyId, replacedAt: Not(IsNull()) });
  if (!isReplaced) return;
  throw new AppError('forbidden', 'This key was replaced and lives out its grace: it cannot issue keys. The key that replaced it can.');
}
