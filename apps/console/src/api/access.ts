import type { Schemas } from './client.js';

export type User = Schemas['User'];

const allowed = {
  /** An admin changes nothing of an owner, and makes nobody one. */
  manageOwners: ['team_owner'],
  manageTeam: ['team_owner', 'team_admin'],
  readBilling: ['team_owner', 'team_admin', 'billing_viewer'],
  useResources: ['team_owner', 'team_admin', 'member'],
} as const satisfies Record<string, readonly string[]>;

export type Permission = keyof typeof allowed;

export function isOperator({ role }: User): boolean {
  return role === 'platform_admin';
}

export function roleIn(user: User, teamId: string): string | undefined {
  return user.teams.find(({ id }) => id === teamId)?.role ?? (isOperator(user) ? user.role : undefined);
}

/** What to offer; the platform decides for itself, and says so where this is behind. */
export function may(user: User, teamId: string, permission: Permission): boolean {
  const roles: readonly string[] = allowed[permission];
  return isOperator(user) || roles.includes(user.teams.find(({ id }) => id === teamId)?.role ?? '');
}
