import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { members } from '@atoll/contracts/teams';
import { gateway, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import type { SsoProviderSettings } from './sso-file.js';
import { SsoMemberships } from './sso-memberships.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
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
