import { requireUser, requireWholeUser, type Caller, type UserCaller } from '@atoll/contracts';

/**
 * As `requireWholeUser`, for what a user does about the own account: any session of the user may, also where it reaches
 * one team only.
 */
export function requireOwnUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  return user.credential.kind === 'session' ? user : requireWholeUser(user, what);
}
