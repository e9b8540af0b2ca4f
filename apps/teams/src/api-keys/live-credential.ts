import { freshLogInMinutes, replacedKeyRefusal, type Caller, type UserCaller } from '@atoll/contracts';
import { databaseNowMs } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { IsNull, type EntityManager } from 'typeorm';
import { SessionEntity } from '../model/session.entity.js';
import { ApiKeyEntity } from '../model/api-key.entity.js';
import { isLive } from './api-key.service.js';
import { hasFactor } from '../model/factors.js';
import { UserEntity } from '../model/user.entity.js';
import type { TeamsSettings } from '../teams-settings.js';

/**
 * A gateway may accept a key or a session for some seconds after its end, so an operation that grants something lasting
 * checks it again.
 */
export async function requireLiveCredential(manager: EntityManager, { credential }: UserCaller): Promise<void> {
  if (credential.kind === 'key') await liveKey(manager, credential.id);
  else await liveSession(manager, credential.id);
}

/**
 * For what issues keys. A key that was revoked must not get itself a successor, nor must one that was replaced and
 * lives out its grace: whoever holds it could replace its successor in turn. It makes no link with which a user logs
 * in, changes no factor and adds no SSH key either (`requireLinkCredential`, `requireFactorCredential`, and pods). All
 * else it may, since that is what a grace is for: to invite somebody, too, whose key it is shown. `what` completes "it
 * cannot …".
 */
export async function requireIssuingCredential(
  manager: EntityManager,
  caller: Caller,
  what = 'issue keys',
): Promise<void> {
  if (caller.kind === 'system') return;
  const { kind, id } = caller.credential;
  if (kind === 'session') return void (await liveSession(manager, id));
  await currentKey(manager, id, what);
}

/**
 * As `requireIssuingCredential`, for links with which the user of an address logs in, and for passwords that the
 * operator sets. A session also needs what `requireFreshCredential` asks for, if the address is the caller's own or the
 * link removes second factors: otherwise an old session, or one by a password alone, could remove the factor that it
 * lacks.
 */
export async function requireLinkCredential(
  manager: EntityManager,
  caller: UserCaller,
  { email, removesFactors = false }: { email: string; removesFactors?: boolean },
): Promise<void> {
  await requireIssuingCredential(manager, caller, 'create a link with which a user logs in');
  if (removesFactors || (await manager.existsBy(UserEntity, { id: caller.userId, email })))
    await requireFreshCredential(manager, caller);
}

/**
 * For changes that outlast a session, such as a key to one's own membership: a session needs a log-in within the last
 * 10 minutes, with the second factor if the user has one. A key must not have been replaced: its holder would keep
 * access after its grace period.
 */
export async function requireFreshCredential(manager: EntityManager, caller: UserCaller): Promise<void> {
  await freshSession(manager, caller);
}

/**
 * As `requireFreshCredential`, for second factors and passkeys. So a password alone can neither add another factor nor
 * remove one. Nor can a key, which shows none: whoever holds it could add a passkey, and log in by that after the key
 * was revoked. Where the user has no factor, a key may add the first one, as a password may.
 */
export async function requireFactorCredential(manager: EntityManager, caller: UserCaller): Promise<void> {
  const session = await freshSession(manager, caller);
  if (session) return;
  const [row] = await manager.query<{ has_factor: boolean }[]>(`SELECT ${hasFactor('$1::uuid')} AS has_factor`, [
    caller.userId,
  ]);
  if (row?.has_factor === false) return;
  throw new AppError(
    'forbidden',
    'An API key cannot change how its user logs in once the user has a second factor. Log in with the second factor.',
  );
}

/**
 * As `requireFreshCredential`, for keys that act for their user as a whole: those reach what a session does not reach
 * without a second factor, so a session that makes one has it wherever one is required. Resolves with whether the key
 * that it makes lacks a second factor, as what makes it does.
 */
export async function requireWholeCredential(
  manager: EntityManager,
  caller: UserCaller,
  { operatorSecondFactor }: Pick<TeamsSettings, 'operatorSecondFactor'>,
): Promise<{ lacksSecondFactor: boolean }> {
  const session = await freshSession(manager, caller);
  if (!session) return liveKey(manager, caller.credential.id);
  if (session.hasSecondFactor) return { lacksSecondFactor: false };
  const [row] = await manager.query<{ is_required: boolean }[]>(
    `SELECT (u.platform_admin AND $2) OR EXISTS (
       SELECT FROM membership m JOIN team t ON t.id = m.team_id
       WHERE m.user_id = u.id AND m.status = 'active' AND t.deleted_at IS NULL AND t.require_second_factor) AS is_required
     FROM "user" u WHERE u.id = $1`,
    [caller.userId, operatorSecondFactor === 'required'],
  );
  if (row?.is_required === false) return { lacksSecondFactor: true };
  throw new AppError(
    'forbidden',
    'A team of yours, or the role of the operator, requires a second factor for a key that is not limited to a team. ' +
      'Set up a second factor, or log in with yours.',
  );
}

/** The session, where it is one. */
async function freshSession(
  manager: EntityManager,
  { userId, credential: { kind, id } }: UserCaller,
): Promise<SessionEntity | undefined> {
  if (kind === 'key') return void (await currentKey(manager, id, 'change how its user logs in'));
  const session = await liveSession(manager, id);
  const [row] = await manager.query<{ is_fresh: boolean; has_factor: boolean }[]>(
    `SELECT $2::timestamptz > now() - interval '${freshLogInMinutes} minutes' AS is_fresh, ${hasFactor('$1::uuid')} AS has_factor`,
    [userId, session.createdAt],
  );
  if (!row?.is_fresh)
    throw new AppError('forbidden', `This needs a log-in within the last ${freshLogInMinutes} minutes. Log in again.`);
  if (row.has_factor && !session.hasSecondFactor) {
    throw new AppError('forbidden', 'This needs a log-in with your second factor. Log in again, with it.');
  }
  return session;
}

async function liveKey(manager: EntityManager, id: string): Promise<ApiKeyEntity> {
  const key = await manager.findOneBy(ApiKeyEntity, { id, revokedAt: IsNull() });
  if (!key) throw new AppError('unauthenticated', 'The API key was revoked.');
  if (!isLive(key, await databaseNowMs(manager))) throw new AppError('unauthenticated', 'The API key has expired.');
  return key;
}

async function currentKey(manager: EntityManager, id: string, what: string): Promise<void> {
  const { replacedAt } = await liveKey(manager, id);
  if (replacedAt !== null) throw replacedKeyRefusal(what);
}

async function liveSession(manager: EntityManager, id: string): Promise<SessionEntity> {
  const session = await manager.findOneBy(SessionEntity, { id, endedAt: IsNull() });
  const endsAtMs = session && Math.min(session.idleUntil.getTime(), session.expiresAt.getTime());
  if (!endsAtMs || endsAtMs <= (await databaseNowMs(manager)))
    throw new AppError('unauthenticated', 'The session has ended. Log in again.');
  return session;
}
