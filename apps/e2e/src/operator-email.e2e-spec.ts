import { describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, freshEmail, type MemberView, type TeamView } from './client.js';

describe("the operator's e-mail address among the members of a team", () => {
  it('yields a key that opens that team alone and never the platform', async () => {
    const operator = await call<{ email: string; id: string; role: string }>('GET', '/user/profile', { key: adminKey });
    expect(operator.body.role).toBe('platform_admin');
    const other = await createTeam('Elsewhere');
    const founder = await call<{ api_key: string }>('POST', '/team', {
      key: adminKey,
      body: { name: 'Founder', members: [{ email: freshEmail('eve'), name: 'Eve', role: 'team_owner' }] },
    });
    const team = founder.body as unknown as TeamView;
    const eve = team.members.find(({ email }) => email.startsWith('eve'))?.api_key ?? '';
    expect(team.members.map(({ email }) => email)).not.toContain(operator.body.email);

    const trap = await call<MemberView>('POST', `/team/${team.id}/members`, {
      key: eve,
      body: { email: operator.body.email, name: 'Not me', role: 'team_owner' },
    });
    expect(trap.status).toBe(201);
    const key = trap.body.api_key ?? '';
    expect((await call('GET', `/team/${team.id}`, { key })).status).toBe(200);
    expect((await call('GET', `/team/${other.team.id}`, { key })).status).toBe(404);
    expect((await call('POST', `/team/${team.id}/suspend`, { key })).status).toBe(403);
    expect((await call('POST', '/policy/image', { key, body: { name: 'mine' } })).status).toBe(403);
    expect((await call('POST', '/user/api-key', { key, body: {} })).status).toBe(403);
    expect((await call('PUT', '/user/profile', { key, body: { name: 'Taken over' } })).status).toBe(403);
    expect((await call('POST', '/team', { key, body: { name: 'Another' } })).status).toBe(403);
    expect((await call<{ data: object[] }>('GET', '/team', { key })).body.data).toHaveLength(1);
    const profile = await call<{ role: string; teams: { id: string }[] }>('GET', '/user/profile', { key });
    expect(profile.body.role).toBe('user');
    expect(profile.body.teams.map(({ id }) => id)).toEqual([team.id]);
  });
});
