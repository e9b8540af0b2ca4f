import type { Caller, UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { IsNull, type EntityManager } from 'typeorm';
import { SessionEntity } from '../model/session.entity.js';
import { ApiKeyEntity } from '../model/api-key.entity.js';

/** A session as young as this is as good as a log-in just now. */
const freshMinutes = 10;

/** A gateway may go on with a key or a session for some seconds after its end: what it gives away would outlast it. */
export async function requireLiveCredential(manager: EntityManager, { credential }: UserCaller): Promise<void> {
  if (credential.kind === 'key') await liveKey(manager, credential.id);
  else await liveSession(manager, credential.id);
}

/**
 * For what replaces keys. A key that was revoked must not get itself a successor, nor must one that was replaced and lives out its grace: whoever holds it still
 * could replace its successor in turn. Everything else it may for as long as it lives, since that is what a grace is for.
 */
export async function requireIssuingCredential(manager: EntityManager, caller: Caller): Promise<void> {
  if (caller.kind === 'system') return;
  const { kind, id } = caller.credential;
  if (kind === 'session') return void (await liveSession(manager, id));
  const { replacedAt } = await liveKey(manager, id);
  if (replacedAt === null) return;
  throw new AppError('forbidden', 'This key was replaced and lives out its grace: it cannot issue keys. The key that replaced it can.');
}

/** For what outlasts a session, such as a key or a second factor: a session takes a log-in of the last 10 minutes. */
export async function requireFreshCredential(manager: EntityManager, caller: UserCaller): Promise<void> {
  const { kind, id } = caller.credential;
  if (kind === 'key') return void (await liveKey(manager, id));
  const { createdAt } = await liveSession(manager, id);
  const [row] = await manager.query<{ is_fresh: boolean }[]>(
    `SELECT $1::timestamptz > now() - interval '${freshMinutes} minutes' AS is_fresh`,
    [createdAt],
  );
  if (row?.is_fresh) return;
  throw new AppError('forbidden', `This takes a log-in of the last ${freshMinutes} minutes. Log in again.`);
}

async function liveKey(manager: EntityManager, id: string): Promise<ApiKeyEntity> {
  const key = await manager.findOneBy(ApiKeyEntity, { id, revokedAt: IsNull() });
  if (!key) throw new AppError('unauthenticated', 'The API key was revoked.');
  return key;
}

async function liveSession(manager: EntityManager, id: string): Promise<SessionEntity> {
  const session = await manager.findOneBy(SessionEntity, { id, endedAt: IsNull() });
  if (!session) throw new AppError('unauthenticated', 'The session has ended. Log in again.');
  return session;
}
