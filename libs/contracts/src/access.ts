import { AppError } from '@atoll/errors';
import type { Caller, CallerCredential, TeamRole, UserCaller } from './caller.js';

/** Permissions in a team by role (`platform_admin` may do everything). */
export const permissions = {
  /** Change the team, its members, the keys of others, workspaces. */
  manageTeam: ['team_owner', 'team_admin'],
  readBilling: ['team_owner', 'team_admin', 'billing_viewer'],
  /** Subscribe, run, expose, attach: all that takes or gives back resources. */
  useResources: ['team_owner', 'team_admin', 'member'],
  readTeam: ['team_owner', 'team_admin', 'member', 'billing_viewer', 'viewer'],
} as const satisfies Record<string, readonly TeamRole[]>;

export type Permission = keyof typeof permissions;

/** The same words for "unknown" and "another team's", so that existence is not told. */
export function notFound(what: string): AppError {
  return new AppError('not_found', `No such ${what}.`);
}

export function isPlatformAdmin(caller: Caller): boolean {
  return caller.kind === 'system' || caller.platformAdmin;
}

/** The caller as a person. Throws `forbidden` for a service that acts by itself. */
export function requireUser(caller: Caller): UserCaller {
  if (caller.kind !== 'user') throw new AppError('forbidden', 'Only a user may do this.');
  return caller;
}

/**
 * The creator of a team has seen the API keys of its members, so a member's key must not reach beyond the team. `what`
 * completes "It cannot …".
 */
export function requireWholeUser(caller: Caller, what: string): UserCaller {
  const user = requireUser(caller);
  if (user.scope === 'user') return user;
  const ofKey = `This key is limited to one team and cannot ${what}. Log in as the user, or use a key that is not limited to a team.`;
  const ofSession =
    `Nobody has shown yet that the address of this account is yours: until then it acts in one team and cannot ${what}. ` +
    'Set a password with a link that was mailed to you, or with one that the operator creates.';
  throw new AppError('forbidden', user.credential.kind === 'key' ? ofKey : ofSession);
}

/** A session as young as this is as good as a log-in just now. */
export const freshLogInMinutes = 10;

/**
 * For operations whose effect outlasts a session: throws `forbidden` for a session whose log-in is older than
 * `freshLogInMinutes`.
 */
export function requireFreshLogIn({ credential }: UserCaller): void {
  const openedAt = credential.openedAt === undefined ? Date.now() : Date.parse(credential.openedAt);
  if (Date.now() - openedAt <= freshLogInMinutes * 60_000) return;
  throw new AppError('forbidden', `This needs a log-in within the last ${freshLogInMinutes} minutes. Log in again.`);
}

/**
 * Refuses an API key that another one has replaced, for operations whose effect outlasts its grace period. `what`
 * completes "it cannot …".
 */
export function replacedKeyRefusal(what: string): AppError {
  return new AppError(
    'forbidden',
    `This key was replaced and is valid only for its grace period: it cannot ${what}. Use the new key.`,
  );
}

/** Throws `forbidden` unless the caller is the operator. */
export function requirePlatformAdmin(caller: Caller): void {
  if (isPlatformAdmin(caller)) return;
  const isOperator = caller.kind === 'user' && caller.lacksOperatorFactor === true;
  const why = isOperator
    ? 'A platform_admin needs a second factor for this. Add one, or log in with it.'
    : 'Only a platform_admin may do this.';
  throw new AppError('forbidden', why);
}

/** For calls between services: throws `forbidden` for every other caller, including the operator. */
export function requireService(caller: Caller): void {
  if (caller.kind !== 'system') throw new AppError('forbidden', 'Only a service may call this operation.');
}

/** Why a team that requires a second factor is closed to a credential, and what opens it. */
const closedTo: Record<CallerCredential['kind'], string> = {
  key:
    'This team requires a second factor, which this API key lacks. ' +
    'Accept the invitation if you have not; then create a key in a session with a second factor.',
  session: 'This team requires a second factor. Add one, or log in with it.',
};

/**
 * Binds a caller to a team. Throws `not_found` for a team the caller is no member of, in the same words as for
 * one that does not exist, and `forbidden` where the role does not reach.
 * `what` names the object in the refusal (`team`, `workspace`), so that the body tells nothing else.
 */
export function requirePermission(caller: Caller, teamId: string, permission: Permission, what = 'team'): void {
  if (isPlatformAdmin(caller)) return;
  const user = caller.kind === 'user' ? caller : undefined;
  const { role, lacksSecondFactor } = user?.teams.find((team) => team.teamId === teamId) ?? {};
  if (!role) throw notFound(what);
  if (lacksSecondFactor) throw new AppError('forbidden', closedTo[user?.credential.kind ?? 'session']);
  const allowed: readonly TeamRole[] = permissions[permission];
  if (!allowed.includes(role)) {
    throw new AppError('forbidden', `The role ${role} may not do this. Allowed roles: ${allowed.join(', ')}.`);
  }
}

/**
 * The teams in which the caller may do this; null: in all, for the operator and for services. For what is asked of no
 * team in particular: a team whose second factor the caller lacks is left out.
 */
export function teamsThatAllow(caller: Caller, permission: Permission): string[] | null {
  if (isPlatformAdmin(caller)) return null;
  const allowed: readonly TeamRole[] = permissions[permission];
  const teams = caller.kind === 'user' ? caller.teams : [];
  return teams
    .filter(({ role, lacksSecondFactor }) => allowed.includes(role) && !lacksSecondFactor)
    .map(({ teamId }) => teamId);
}

/**
 * For whom a caller counts where people share what there is: the user; or all keys of invited people that one user was
 * shown, which count together, and apart from that user: or those people could use up what is the user's own. No id.
 */
export function holderOf({ heldBy, userId }: UserCaller): string {
  return heldBy === undefined ? userId : `held/${heldBy}`;
}

/**
 * The person, or holder of keys, for whom a caller counts besides its team; null: nobody, for the operator and for
 * services.
 */
export function personOf(caller: Caller): string | null {
  return caller.kind === 'user' && !caller.platformAdmin ? holderOf(caller) : null;
}

/**
 * Why a team gets nothing new, in every service; undefined if it may have more. `beingDeleted` is what goes, the team
 * or the workspace in question. Its deletion is said before a suspension, as it is final; a suspension does not bind
 * the operator.
 */
export function growthRefusal(
  team: { readonly beingDeleted: 'team' | 'workspace' | undefined; readonly isSuspended: boolean },
  isByOperator: boolean,
): AppError | undefined {
  if (team.beingDeleted) return new AppError('conflict', `The ${team.beingDeleted} is being deleted.`);
  if (!team.isSuspended || isByOperator) return undefined;
  return new AppError(
    'team_suspended',
    'The team is suspended: it may read, stop, unsubscribe and delete, nothing else.',
  );
}
