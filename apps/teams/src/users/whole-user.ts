import { requireUser, type Caller, type UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';

/** Whoever made a team holds keys of its members: such a key must not reach beyond the team. `what` completes "It cannot …". */
export function requireWholeUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  if (user.scope === 'user') return user;
  throw new AppError(
    'forbidden',
    `This key acts in its one team alone and cannot ${what}. Sign in as the user, or use a key of the user as a whole.`,
  );
}

/** As `requireWholeUser`, for what a user does about the own account: any session of the user may, also where it reaches one team only. */
export function requireOwnUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  return user.credential.kind === 'session' ? user : requireWholeUser(user, what);
}
