import { beforeAll, describe, expect, it } from '@jest/globals';
import { call, createTeam } from './client.js';

describe('tenants never meet', () => {
  let stranger = '';
  let ours: Awaited<ReturnType<typeof createTeam>>;
  const unknown = '01890000-0000-7000-8000-000000000000';

  beforeAll(async () => {
    ours = await createTeam('Ours', ['team_owner', 'member']);
    stranger = (await createTeam('Stranger')).keys.team_owner ?? '';
  });

  const newMember = { email: 'mallory@example.com', name: 'Mallory', role: 'team_owner' };
  const operations: { method: string; path: string; body?: object }[] = [
    { method: 'GET', path: '/team/{team}' },
    { method: 'PUT', path: '/team/{team}', body: { name: 'taken' } },
    { method: 'DELETE', path: '/team/{team}' },
    { method: 'GET', path: '/team/{team}/members' },
    { method: 'POST', path: '/team/{team}/members', body: newMember },
    { method: 'PUT', path: '/team/{team}/members/{user}', body: { role: 'viewer' } },
    { method: 'DELETE', path: '/team/{team}/members/{user}' },
    { method: 'POST', path: '/team/{team}/members/{user}/api-key', body: {} },
    { method: 'DELETE', path: '/team/{team}/members/{user}/api-key' },
    { method: 'GET', path: '/workspace?team_id={team}' },
    { method: 'POST', path: '/workspace', body: { team_id: '{team}', name: 'x' } },
    { method: 'PUT', path: '/workspace/{workspace}', body: { name: 'taken' } },
    { method: 'DELETE', path: '/workspace/{workspace}' },
    { method: 'GET', path: '/policy/image/team/{team}/objects' },
    { method: 'GET', path: '/team-billing/{team}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc' },
    { method: 'GET', path: '/workspace-billing/{workspace}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc' },
    {
      method: 'GET',
      path: '/team-billing/group-by-workspace/{team}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc',
    },
    { method: 'GET', path: '/team-billing/gpuaas-pool/{team}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/all/utc' },
    {
      method: 'GET',
      path: '/team-billing/shared-storage/{team}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/all/utc',
    },
    { method: 'GET', path: '/team-billing/monthly-comparison/{team}/2026-09/2026-10' },
  ];

  it.each(operations)('$method $path answers a stranger as if it did not exist', async ({ method, path, body }) => {
    const fill = (text: string, ids: { team: string; user: string; workspace: string }) =>
      text.replace('{team}', ids.team).replace('{user}', ids.user).replace('{workspace}', ids.workspace);
    const ask = (ids: { team: string; user: string; workspace: string }) =>
      call(method, fill(path, ids), { key: stranger, ...(body && { raw: fill(JSON.stringify(body), ids) }) });
    const foreign = await ask({
      team: ours.team.id,
      user: ours.ids.member ?? '',
      workspace: ours.team.workspaces[0]?.id ?? '',
    });
    const missing = await ask({ team: unknown, user: unknown, workspace: unknown });
    expect(foreign.status).toBe(404);
    const comparable = ({ instance: _instance, request_id: _id, ...rest }: Record<string, unknown>) => rest;
    expect(comparable(foreign.body)).toEqual(comparable(missing.body));
  });

  it('changed nothing', async () => {
    const { body } = await call('GET', `/team/${ours.team.id}`, { key: ours.keys.team_owner });
    expect(body).toMatchObject({ name: 'Ours', status: 'active', workspaces: ours.team.workspaces });
    expect((body.members as object[]).length).toBe(2);
  });

  it('lists only the teams of the caller', async () => {
    const { body } = await call<{ data: { id: string }[]; pagination: object }>('GET', '/team', { key: stranger });
    expect(body.pagination).toEqual({ page: 0, limit: 10, total: 1 });
    expect(body.data.map(({ id }) => id)).not.toContain(ours.team.id);
  });
});
