import { requireUser, type Caller, type UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';

/** Whoever made a team holds keys of its members: such a key must not reach beyond the team. `what` completes "It cannot …". */
export function requireWholeUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  if (user.scope === 'user') return user;
  const way =
    user.credential.kind === 'key'
      ? 'This key acts in its one team alone, and cannot WHAT. Sign in as the user, or use a key of the user as a whole.'
      : 'Nobody has shown yet that the address of this account is yours: until then it acts in one team alone, and cannot WHAT. ' +
        'Set a password by a link that was mailed to you, or by one that the operator makes.';
  throw new AppError('forbidden', way.replace('WHAT', what));
}

/** As `requireWholeUser`, for what a user does about the own account: any session of the user may, also where it reaches one team only. */
export function requireOwnUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  return user.credential.kind === 'session' ? user : requireWholeUser(user, what);
}
