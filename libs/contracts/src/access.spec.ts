import { describe, expect, it } from '@jest/globals';
import type { AppError } from '@atoll/errors';
import {
  permissions,
  requireFreshLogIn,
  requirePermission,
  requirePlatformAdmin,
  requireService,
  requireUser,
  requireWholeUser,
  teamsThatAllow,
  type Permission,
} from './access.js';
import { teamRoles, type TeamRole, type UserCaller } from './caller.js';

const user = (overrides: Partial<UserCaller> = {}): UserCaller => ({
  kind: 'user',
  userId: 'u',
  credential: { kind: 'key', id: 'k' },
  scope: 'user',
  platformAdmin: false,
  timezone: 'UTC',
  teams: [],
  ...overrides,
});

function outcome(attempt: () => void): string {
  try {
    attempt();
    return 'allowed';
  } catch (error) {
    return (error as AppError).code;
  }
}

describe('who may do what', () => {
  const expected: Record<Permission, readonly TeamRole[]> = {
    manageTeam: ['team_owner', 'team_admin'],
    readBilling: ['team_owner', 'team_admin', 'billing_viewer'],
    useResources: ['team_owner', 'team_admin', 'member'],
    readTeam: teamRoles,
  };
  const cases = (Object.keys(permissions) as Permission[]).flatMap((permission) =>
    teamRoles.map((role) => [permission, role] as const),
  );

  it.each(cases)('%s by a %s', (permission, role) => {
    const caller = user({ teams: [{ teamId: 't', role }] });
    expect(outcome(() => requirePermission(caller, 't', permission))).toBe(
      expected[permission].includes(role) ? 'allowed' : 'forbidden',
    );
  });

  it.each(Object.keys(permissions) as Permission[])(
    '%s, asked of no team in particular, holds in each team where it does',
    (permission) => {
      const teams = teamRoles.flatMap((role) => [
        { teamId: role, role },
        { teamId: `${role} without the factor that it requires`, role, lacksSecondFactor: true },
      ]);
      const caller = user({ teams });
      expect(teamsThatAllow(caller, permission)).toEqual(
        teamRoles.filter((role) => expected[permission].includes(role)),
      );
      const one = (teamId: string) => outcome(() => requirePermission(caller, teamId, permission)) === 'allowed';
      expect(teamsThatAllow(caller, permission)).toEqual(teams.map(({ teamId }) => teamId).filter(one));
      expect(teamsThatAllow(user({ platformAdmin: true }), permission)).toBeNull();
      expect(teamsThatAllow({ kind: 'system', service: 'teams' }, permission)).toBeNull();
    },
  );

  it("answers for another team's object as for an unknown one", () => {
    const caller = user({ teams: [{ teamId: 't', role: 'team_owner' }] });
    expect(outcome(() => requirePermission(caller, 'other', 'readTeam'))).toBe('not_found');
  });

  it('tells who acts in one team alone how to act as a whole: by key otherwise than by session', () => {
    const confined = (kind: 'key' | 'session') => user({ scope: 'membership', credential: { kind, id: 'k' } });
    expect(() => requireWholeUser(confined('key'), 'do it')).toThrow(
      /^This key is limited to one team and cannot do it\. Log in/,
    );
    expect(() => requireWholeUser(confined('session'), 'do it')).toThrow(
      /^Nobody has shown yet .* and cannot do it\. Set a password with a link/,
    );
    expect(requireWholeUser(user(), 'do it')).toEqual(user());
  });

  it('takes a session of the last 10 minutes for what outlasts it', () => {
    const session = (ms: number) =>
      user({ credential: { kind: 'session', id: 's', openedAt: new Date(Date.now() - ms).toISOString() } });
    expect(outcome(() => requireFreshLogIn(session(590_000)))).toBe('allowed');
    expect(outcome(() => requireFreshLogIn(session(601_000)))).toBe('forbidden');
    expect(outcome(() => requireFreshLogIn(user()))).toBe('allowed');
  });

  it('keeps what services ask of each other from everybody else, the operator too', () => {
    expect(outcome(() => requireService({ kind: 'system', service: 'teams' }))).toBe('allowed');
    for (const caller of [user(), user({ platformAdmin: true })])
      expect(outcome(() => requireService(caller))).toBe('forbidden');
  });

  it('lets the operator and the platform itself do everything', () => {
    expect(outcome(() => requirePermission(user({ platformAdmin: true }), 't', 'manageTeam'))).toBe('allowed');
    expect(outcome(() => requirePlatformAdmin({ kind: 'system', service: 'teams' }))).toBe('allowed');
    expect(() => requirePlatformAdmin(user())).toThrow('Only a platform_admin may do this.');
    expect(() => requirePlatformAdmin(user({ lacksOperatorFactor: true }))).toThrow(
      'A platform_admin needs a second factor',
    );
    expect(outcome(() => requireUser({ kind: 'system', service: 'teams' }))).toBe('forbidden');
  });
});
