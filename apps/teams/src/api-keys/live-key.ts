import type { UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { IsNull, type EntityManager } from 'typeorm';
import { ApiKeyEntity } from './api-key.entity.js';

/** A gateway may go on with a key for some seconds after it was revoked: such a key must not get itself a successor. */
export async function requireLiveKey(manager: EntityManager, { keyId }: UserCaller): Promise<void> {
  const isLive = await manager.existsBy(ApiKeyEntity, { id: keyId, revokedAt: IsNull() });
  if (!isLive) throw new AppError('unauthenticated', 'The API key was revoked.');
}
