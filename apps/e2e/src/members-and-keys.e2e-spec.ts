import { describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, freshEmail, type MemberView, type TeamView } from './client.js';

describe('a team and its people', () => {
  it('gains a member, whose key works at once, changes the role, and loses the member with the key', async () => {
    const { team, keys } = await createTeam('People');
    const owner = keys.team_owner;
    const email = freshEmail('grace');
    const added = await call<MemberView>('POST', `/team/${team.id}/members`, {
      key: owner,
      body: { email, name: 'Grace', role: 'viewer' },
    });
    expect(added.status).toBe(201);
    const grace = added.body.api_key ?? '';
    expect((await call('GET', `/team/${team.id}`, { key: grace })).status).toBe(200);
    expect((await call('POST', '/workspace', { key: grace, body: { team_id: team.id, name: 'lab' } })).status).toBe(
      403,
    );

    const path = `/team/${team.id}/members/${added.body.user_id}`;
    expect((await call('PUT', path, { key: owner, body: { role: 'team_admin' } })).body).toMatchObject({
      role: 'team_admin',
    });
    expect((await call('POST', '/workspace', { key: grace, body: { team_id: team.id, name: 'lab' } })).status).toBe(
      201,
    );

    expect((await call('DELETE', path, { key: owner })).status).toBe(204);
    expect((await call('GET', `/team/${team.id}`, { key: grace })).status).toBe(401);
    expect(
      (await call('POST', `/team/${team.id}/members`, { key: owner, body: { email, name: 'Grace', role: 'viewer' } }))
        .status,
    ).toBe(201);
  });

  it('keeps its last owner', async () => {
    const { team, keys, ids } = await createTeam('Last owner', ['team_owner', 'team_admin']);
    const other = `/team/${team.id}/members/${ids.team_admin}`;
    expect((await call('PUT', other, { key: keys.team_owner, body: { role: 'team_owner' } })).status).toBe(200);
    expect((await call('DELETE', other, { key: keys.team_owner })).status).toBe(204);
    const last = `/team/${team.id}/members/${ids.team_owner}`;
    expect((await call('DELETE', last, { key: keys.team_owner })).status).toBe(409);
    expect((await call('PUT', last, { key: keys.team_owner, body: { role: 'viewer' } })).status).toBe(409);
  });

  it('rotates a key: with grace both work, without grace only the new one', async () => {
    const { team, keys, ids } = await createTeam('Rotation', ['team_owner', 'member']);
    const path = `/team/${team.id}/members/${ids.member}/api-key`;
    const first = keys.member;
    const second = await call<MemberView>('POST', path, {
      key: keys.team_owner,
      body: { grace_seconds: 3600, ip_whitelist: '127.0.0.0/8, ::1' },
    });
    expect(second.status).toBe(201);
    expect(second.body.ip_whitelist).toBe('127.0.0.0/8,::1');
    for (const key of [first, second.body.api_key ?? ''])
      expect((await call('GET', `/team/${team.id}`, { key })).status).toBe(200);

    const third = await call<MemberView>('POST', path, { key: second.body.api_key ?? '' });
    expect(third.status).toBe(201);
    expect((await call('GET', `/team/${team.id}`, { key: second.body.api_key ?? '' })).status).toBe(401);
    expect((await call('GET', `/team/${team.id}`, { key: third.body.api_key ?? '' })).status).toBe(200);

    expect((await call('DELETE', path, { key: keys.team_owner })).status).toBe(204);
    const refused = await call('GET', `/team/${team.id}`, { key: third.body.api_key ?? '' });
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toBeDefined();
    const shown = await call<TeamView>('GET', `/team/${team.id}`, { key: keys.team_owner });
    expect(shown.body.members.find(({ user_id }) => user_id === ids.member)).toMatchObject({
      api_key: null,
      api_token: false,
      expiry_date: null,
    });
  });

  it('refuses a key from an address outside its whitelist, whatever the caller says of itself', async () => {
    const { team, keys, ids } = await createTeam('Addresses', ['team_owner', 'member']);
    const path = `/team/${team.id}/members/${ids.member}/api-key`;
    const issued = await call<MemberView>('POST', path, {
      key: keys.team_owner,
      body: { ip_whitelist: '203.0.113.0/24' },
    });
    const spoofed: Record<string, string>[] = [
      {},
      { 'x-forwarded-for': '203.0.113.9' },
      { forwarded: 'for=203.0.113.9' },
      { 'x-real-ip': '203.0.113.9' },
    ];
    for (const headers of spoofed) {
      const refused = await call('GET', `/team/${team.id}`, { key: issued.body.api_key ?? '', headers });
      expect([refused.status, refused.body.code]).toEqual([403, 'ip_not_allowed']);
    }
  });

  it('is suspended by the operator: it reads and gives back, nothing else', async () => {
    const { team, keys, ids } = await createTeam('Suspended', ['team_owner', 'member']);
    expect((await call('POST', `/team/${team.id}/suspend`, { key: keys.team_owner })).status).toBe(403);
    expect((await call('POST', `/team/${team.id}/suspend`, { key: adminKey })).body).toMatchObject({
      is_suspended: true,
      status: 'active',
    });
    const refused = await call('PUT', `/team/${team.id}`, { key: keys.team_owner, body: { name: 'x' } });
    expect([refused.status, refused.body.code]).toEqual([403, 'team_suspended']);
    expect((await call('GET', `/team/${team.id}`, { key: keys.member })).body).toMatchObject({
      is_suspended: true,
      name: 'Suspended',
    });
    expect((await call('DELETE', `/team/${team.id}/members/${ids.member}`, { key: keys.team_owner })).status).toBe(204);
    expect((await call('POST', `/team/${team.id}/unsuspend`, { key: adminKey })).body).toMatchObject({
      is_suspended: false,
    });
    expect(
      (await call('PUT', `/team/${team.id}`, { key: keys.team_owner, body: { name: 'Back' } })).body,
    ).toMatchObject({
      id: team.id,
      name: 'Back',
    });
  });

  it('is deleted, and with it every key', async () => {
    const { team, keys } = await createTeam('Short-lived', ['team_owner', 'team_admin']);
    expect((await call('DELETE', `/team/${team.id}`, { key: keys.team_admin })).status).toBe(403);
    expect((await call('DELETE', `/team/${team.id}`, { key: keys.team_owner })).status).toBe(204);
    expect((await call('GET', `/team/${team.id}`, { key: keys.team_owner })).status).toBe(401);
    expect((await call('GET', `/team/${team.id}`, { key: adminKey })).status).toBe(404);
  });
});
