import type { Caller, UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { IsNull, type EntityManager } from 'typeorm';
import { ApiKeyEntity } from './api-key.entity.js';

/** A gateway may go on with a key for some seconds after it was revoked: what such a key gives away would outlast it. */
export async function requireLiveKey(manager: EntityManager, { credential }: UserCaller): Promise<void> {
  await liveKey(manager, credential.id);
}

/**
 * For what replaces keys. A key that was revoked must not get itself a successor, nor must one that was replaced and lives out its grace: whoever holds it still
 * could replace its successor in turn. Everything else it may for as long as it lives, since that is what a grace is for.
 */
export async function requireIssuingKey(manager: EntityManager, caller: Caller): Promise<void> {
  if (caller.kind === 'system') return;
  const { replacedAt } = await liveKey(manager, caller.credential.id);
  if (replacedAt === null) return;
  throw new AppError('forbidden', 'This key was replaced and lives out its grace: it cannot issue keys. The key that replaced it can.');
}

async function liveKey(manager: EntityManager, id: string): Promise<ApiKeyEntity> {
  const key = await manager.findOneBy(ApiKeyEntity, { id, revokedAt: IsNull() });
  if (!key) throw new AppError('unauthenticated', 'The API key was revoked.');
  return key;
}
