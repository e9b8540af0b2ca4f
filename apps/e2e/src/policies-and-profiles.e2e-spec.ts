import { describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, fresh, userKeyOf, type TeamView } from './client.js';

interface PolicyView {
  id: string;
  name: string;
  is_default: boolean;
  objects: { id: string; name: string; reference: string }[];
}

describe('image policies', () => {
  it('are made by the operator, given to a team, and read by everyone in it', async () => {
    const { team, keys } = await createTeam('Images', ['team_owner', 'viewer']);
    const objects = [
      { name: 'nginx', reference: 'nginx' },
      { name: 'cuda', reference: 'nvcr.io/nvidia/cuda:13.0' },
    ];
    const name = `approved ${team.id}`;
    const made = await call<PolicyView>('POST', '/policy/image', { key: adminKey, body: { name, objects } });
    expect(made.status).toBe(201);
    expect((await call('POST', '/policy/image', { key: keys.team_owner, body: { name: 'mine' } })).status).toBe(403);

    const path = `/policy/image/team/${team.id}/objects`;
    expect((await call(`GET`, path, { key: keys.viewer })).body).toEqual({ data: [] });
    expect(
      (await call('POST', `/policy/image/${made.body.id}/assign-team`, { key: adminKey, body: { team_id: team.id } }))
        .status,
    ).toBe(200);
    for (const key of [keys.viewer, keys.team_owner, adminKey]) {
      const listed = await call<{ data: { name: string }[] }>('GET', path, { key });
      expect(listed.body.data.map((image) => image.name)).toEqual(['nginx', 'cuda']);
    }
    const shown = await call<TeamView>('GET', `/team/${team.id}`, { key: keys.viewer });
    expect(shown.body.policy_info).toEqual({ policy_id: made.body.id, policy_name: name });
    expect((await call('DELETE', `/policy/image/${made.body.id}`, { key: adminKey })).status).toBe(409);
  });
});

describe('a profile', () => {
  it('takes any name of the tz database, kept as written, and shows it at once', async () => {
    const { team } = await createTeam(fresh('Travellers'));
    const key = await userKeyOf(team.members[0]?.email ?? '');
    for (const timezone of ['Asia/Kathmandu', 'Asia/Katmandu', 'UTC']) {
      expect((await call('PUT', '/user/profile', { key, body: { timezone } })).body).toMatchObject({ timezone });
      expect((await call('GET', '/user/profile', { key })).body).toMatchObject({
        timezone,
        role: 'user',
        card_count: expect.any(Number),
      });
    }
  });

  it('has keys of its own, which act for the user as a whole', async () => {
    const { team } = await createTeam(fresh('Key holders'));
    const key = await userKeyOf(team.members[0]?.email ?? '');
    const issued = await call<{ api_key: string }>('POST', '/user/api-key', { key, body: { grace_seconds: 604_800 } });
    expect(issued.status).toBe(201);
    for (const each of [key, issued.body.api_key])
      expect((await call('GET', '/user/profile', { key: each })).body).toMatchObject({
        role: 'user',
        teams: [{ id: team.id }],
      });
  });
});
