import { isPlatformAdmin, permissions, type Caller, type TeamRole } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import type { ApiKeyEntity } from '../api-keys/api-key.entity.js';
import type { SettledTerms } from '../api-keys/key-terms.js';
import { roleOf } from './member-rules.js';

/**
 * The terms of the key that takes the place of `current`. What a manager of the team set on a key, addresses or expiry, holds for the keys that its
 * holder issues in its place. Throws `forbidden` where the holder asks for more.
 */
export function successorTerms(
  caller: Caller,
  { userId, teamId }: { userId: string; teamId: string },
  { expiryDate, isExpiryAsked, ipWhitelist: askedWhitelist }: SettledTerms,
  current: ApiKeyEntity | null,
): Pick<ApiKeyEntity, 'expiryDate' | 'ipWhitelist' | 'boundUntil'> {
  const currentWhitelist = current?.ipWhitelist ?? '';
  const ipWhitelist = askedWhitelist ?? currentWhitelist;
  if (isManager(caller, teamId)) {
    const isOwn = caller.kind === 'user' && caller.userId === userId;
    return { expiryDate, ipWhitelist, boundUntil: isExpiryAsked && !isOwn ? expiryDate : null };
  }
  if (currentWhitelist !== '' && ipWhitelist !== currentWhitelist) throw setByManager('an ip_whitelist');
  const boundUntil = current?.boundUntil ?? null;
  if (!boundUntil || expiryDate <= boundUntil) return { expiryDate, ipWhitelist, boundUntil };
  if (isExpiryAsked) throw setByManager(`an expiry_date, ${boundUntil.toISOString()},`);
  return { expiryDate: boundUntil, ipWhitelist, boundUntil };
}

function isManager(caller: Caller, teamId: string): boolean {
  const managers: readonly (TeamRole | undefined)[] = permissions.manageTeam;
  return isPlatformAdmin(caller) || managers.includes(roleOf(caller, teamId));
}

function setByManager(what: string): AppError {
  return new AppError(
    'forbidden',
    `The key has ${what} which only a team_owner or a team_admin may change. Leave the field out to keep it.`,
  );
}
