import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { members } from '@atoll/contracts/teams';
import { Logger } from '@nestjs/common';
import { gateway, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import type { SsoProviderSettings } from './sso-file.js';
import { SsoMemberships } from './sso-memberships.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

it('a member whom a provider makes team_owner keeps no key that no team_owner issued, and one that was', async () => {
  const { team, keys } = await fixture.createTeam('team_owner', 'team_admin');
  const [owner = '', admin = ''] = keys;
  const grants = (['team_owner', 'member'] as const).map((role) => ({ value: role, team_id: team.id, role }));
  const provider = { id: 'corp', mapping: { claim: 'groups', grants } } as unknown as SsoProviderSettings;
  const memberships = fixture.get(SsoMemberships);
  for (const [issuer, isKept] of [
    [admin, false],
    [owner, true],
  ] as const) {
    const { userId } = await somebody(fixture);
    await memberships.apply(userId, provider, ['member'], gateway);
    const { api_key } = await fixture.call(issuer, members.issueKey, { team_id: team.id, user_id: userId });
    const roles = async () => (await fixture.verify(api_key ?? '')).teams.map(({ role }) => role);
    expect(await roles()).toEqual(['member']);
    await memberships.apply(userId, provider, ['team_owner'], gateway);
    if (isKept) expect(await roles()).toEqual(['team_owner']);
    else expect((await errorOf(roles())).code).toBe('unauthenticated');
  }
});

it('a provider gives a team no more than 1,000 members, logs it once, and gives the teams that have room', async () => {
  const [{ team: full }, { team: next }] = [
    await fixture.createTeam('team_owner'),
    await fixture.createTeam('team_owner'),
  ];
  await fixture.query(
    `WITH crowd AS (INSERT INTO "user" (id, email, name) SELECT gen_random_uuid(), n || '@crowd.example', 'x' FROM generate_series(1, 998) n RETURNING id)
     INSERT INTO membership (id, team_id, user_id, name, role) SELECT gen_random_uuid(), $1, id, 'x', 'viewer' FROM crowd`,
    [full.id],
  );
  const grants = [full, next].map(({ id: team_id }) => ({ value: 'all', team_id, role: 'member' }));
  const provider = { id: 'corp', mapping: { claim: 'groups', grants } } as unknown as SsoProviderSettings;
  const logIn = (userId: string) => fixture.get(SsoMemberships).apply(userId, provider, ['all'], gateway);
  const [last, late] = [await somebody(fixture), await somebody(fixture)];
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  for (const { userId } of [last, late, last]) await logIn(userId);
  const teamsOf = async ({ userId }: { userId: string }) =>
    (
      await fixture.query<{ team_id: string }>(
        `SELECT team_id FROM membership WHERE user_id = $1 AND sso_provider = 'corp' ORDER BY created_at`,
        [userId],
      )
    ).map(({ team_id }) => team_id);
  expect([await teamsOf(last), await teamsOf(late)]).toEqual([[full.id, next.id], [next.id]]);
  expect(warn.mock.calls).toEqual([
    [`The mapping of corp cannot be applied to team ${full.id}: A team has at most 1000 members.`],
  ]);
});
