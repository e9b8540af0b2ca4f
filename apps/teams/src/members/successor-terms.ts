import type { Caller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import type { ApiKeyEntity } from '../model/api-key.entity.js';
import { isLive } from '../api-keys/api-key.service.js';
import type { SettledTerms } from '../api-keys/key-terms.js';
import { isManager } from './member-rules.js';

/**
 * The terms of the key that comes after `last`. What a manager of the team set on a key, addresses or expiry, holds for
 * the keys that its holder issues after it, also where it has ended meanwhile. Throws `forbidden` where the holder asks
 * for more.
 */
export function successorTerms(
  caller: Caller,
  { userId, teamId }: { userId: string; teamId: string },
  { expiryDate, isExpiryAsked, ipWhitelist: asked, nowMs }: SettledTerms & { nowMs: number },
  last: ApiKeyEntity | null,
): Pick<ApiKeyEntity, 'expiryDate' | 'ipWhitelist' | 'boundUntil'> {
  if (isManager(caller, teamId)) {
    const isOwn = caller.kind === 'user' && caller.userId === userId;
    const replaced = last && isLive(last, nowMs) ? last.ipWhitelist : '';
    return { expiryDate, ipWhitelist: asked ?? replaced, boundUntil: isExpiryAsked && !isOwn ? expiryDate : null };
  }
  const { ipWhitelist: bound = '', boundUntil = null } = last ?? {};
  const ipWhitelist = asked ?? bound;
  if (bound !== '' && ipWhitelist !== bound) throw setByManager('an ip_whitelist');
  if (!boundUntil || expiryDate <= boundUntil) return { expiryDate, ipWhitelist, boundUntil };
  if (isExpiryAsked || boundUntil.getTime() <= nowMs)
    throw setByManager(`an expiry_date, ${boundUntil.toISOString()},`);
  return { expiryDate: boundUntil, ipWhitelist, boundUntil };
}

function setByManager(what: string): AppError {
  return new AppError(
    'forbidden',
    `The key has ${what} which only a team_owner or a team_admin may change. Leave the field out to keep it.`,
  );
}
