import { describe, expect, it } from '@jest/globals';
import {
  adminKey,
  call,
  createTeam,
  freshEmail,
  platformUrl,
  until,
  type MemberView,
  type TeamView,
} from './client.js';

/** That of a user tells no age. */
const randomUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const key = /^atl_[0-9A-Za-z]{38}$/;
const masked = /^atl_[0-9A-Za-z]{4}…[0-9A-Za-z]{4}$/;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('a newcomer', () => {
  it('creates a team and is shown everything, each key once', async () => {
    const email = freshEmail('ada');
    const created = await call<TeamView>('POST', '/team', {
      key: adminKey,
      body: { name: 'Research', description: 'Protein folding', members: [{ email, name: 'Ada', role: 'member' }] },
    });
    expect(created.status).toBe(201);
    const member = (role: string): MemberView => ({
      user_id: expect.stringMatching(randomUuid) as unknown as string,
      email: expect.any(String) as unknown as string,
      name: expect.any(String) as unknown as string,
      role,
      status: role === 'team_owner' ? 'active' : 'invited',
      api_key: expect.stringMatching(key) as unknown as string,
      api_token: true,
      expiry_date: expect.stringMatching(instant) as unknown as string,
      ip_whitelist: '',
    });
    const [owner, invited] = created.body.members;
    const { invitation, ...shown } = invited!;
    const link = { url: expect.stringMatching(/\/link#/), expires_at: expect.stringMatching(instant) };
    expect(invitation).toEqual(link);
    expect({ ...created.body, members: [owner, shown] }).toEqual({
      id: expect.stringMatching(uuid),
      name: 'Research',
      description: 'Protein folding',
      created_at: expect.stringMatching(instant),
      status: 'active',
      is_suspended: false,
      require_second_factor: false,
      has_pool_subscription: false,
      members: [member('team_owner'), { ...member('member'), email, name: 'Ada' }],
      policy_info: { policy_id: expect.stringMatching(uuid), policy_name: 'default' },
      workspaces: [{ id: expect.stringMatching(uuid), name: 'default' }],
    });

    const ada = created.body.members[1]?.api_key ?? '';
    const read = await call<TeamView>('GET', `/team/${created.body.id}`, { key: ada });
    expect(read.status).toBe(200);
    expect(read.body).toEqual({
      ...created.body,
      members: created.body.members.map(({ invitation: _once, ...member }) => ({
        ...member,
        api_key: expect.stringMatching(masked),
      })),
    });
    expect(JSON.stringify(read.body)).not.toContain(ada);
  });

  it("lists the team's members with a member's key, and is refused with another team's", async () => {
    const { team, keys } = await createTeam('Ours', ['team_owner', 'viewer', 'member']);
    const other = await createTeam('Theirs');
    const listed = await call<{ data: MemberView[]; pagination: object }>(
      'GET',
      `/team/${team.id}/members?page=0&limit=2`,
      {
        key: keys.viewer,
      },
    );
    expect(listed.status).toBe(200);
    expect(listed.body.data).toHaveLength(2);
    expect(listed.body.pagination).toEqual({ page: 0, limit: 2, total: 3 });
    expect(listed.headers.link).toContain('page=1');

    const refused = await call('GET', `/team/${team.id}/members`, { key: other.keys.team_owner });
    expect(refused.status).toBe(404);
    expect(refused.headers['content-type']).toContain('application/problem+json');
    expect(refused.body).toMatchObject({
      code: 'not_found',
      status: 404,
      statusCode: 404,
      instance: `/api/team/${team.id}/members`,
    });
    expect(refused.body.message).toBe(refused.body.detail);
  });

  it('reads the same key by Authorization and by x-api-key', async () => {
    const { team, keys } = await createTeam('Two headers');
    const headers = { 'x-api-key': keys.team_owner ?? '' };
    expect((await call('GET', `/team/${team.id}`, { headers })).status).toBe(200);
    expect((await call('GET', `/team/${team.id}`, { headers, key: keys.team_owner })).status).toBe(200);
    expect((await call('GET', `/team/${team.id}`, { headers, key: adminKey })).status).toBe(401);
  });

  it('finds the document and the page to try it, without a key', async () => {
    const document = await call<{ openapi: string; paths: Record<string, object> }>('GET', '/openapi.json');
    expect(document.body.openapi).toMatch(/^3\.1\./);
    expect(Object.keys(document.body.paths)).toContain('/api/team/{team_id}');
    expect((await call('GET', '/docs')).status).toBe(200);
    expect((await call<string>('GET', '/docs/errors')).body).toContain('id="not_found"');
  });

  it('sees that the platform lives, is ready and can be measured', async () => {
    for (const path of ['livez', 'readyz', 'metrics']) {
      await until(
        () => fetch(`${platformUrl}/${path}`),
        ({ status }) => status === 200,
      );
    }
  });
});
