import { describe, expect, it } from '@jest/globals';
import {
  adminKey,
  call,
  compatUrl,
  createTeam,
  fresh,
  freshEmail,
  platformUrl,
  until,
  type Answer,
  type CallOptions,
  type TeamView,
} from './client.js';

interface OldMember {
  user_id: string;
  status: string;
  role: { name: string };
  user: { email: string };
}

/**
 * A call as an old client makes it: with its key in a header of its own, and whatever comes to its mind in the body.
 */
function old<Body = { code?: number; message?: string }>(
  method: string,
  path: string,
  key = adminKey,
  options: CallOptions = {},
): Promise<Answer<Body>> {
  return call<Body>(method, path, { url: compatUrl, ...options, headers: { 'X-Api-Key': key, ...options.headers } });
}

async function body<Body>(answer: Promise<Answer<Body>>): Promise<Body> {
  const { status, body: answered } = await answer;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(answered)}`);
  return answered;
}

const membersOf = (teamId: string, query = ''): Promise<{ members: OldMember[]; count: number }> =>
  body(old<{ members: OldMember[]; count: number }>('GET', `/team/${teamId}/members?itemsPerPage=50${query}`));

describe('a shop of an older form of the API', () => {
  it('sets a customer up, changes the team, and takes it down', async () => {
    const { roles } = await body(old<{ roles: { id: string; name: string }[] }>('GET', '/roles'));
    const roleId = (name: string) => roles.find((role) => role.name === name)?.id ?? '';
    const defaults = await body(old<{ type: string; id: string }[]>('GET', '/policy/defaults'));
    const policy = (type: string) => defaults.find((one) => one.type === type)?.id;
    const members = [{ email: freshEmail('customer'), name: 'Customer', role: roleId('team_admin'), phone: '1' }];
    const request = {
      name: fresh('Customer'),
      color: '#fff',
      members,
      general: { image_policy_id: policy('image') },
      two_factor: false,
    };
    const team = await body(old<TeamView & { suspended: boolean }>('POST', '/team', adminKey, { body: request }));
    expect(team.members).toMatchObject([
      { name: 'Customer', role: 'team_owner', api_key: expect.stringMatching(/^atl_/) },
    ]);
    const customerKey = team.members[0]?.api_key ?? '';

    const { id } = team;
    await body(old('POST', `/pricing-policy/${policy('pricing')}/assign-team`, adminKey, { body: { team_id: id } }));
    await body(
      old('POST', '/resource-policy/assign-team', adminKey, { body: { policy_id: policy('resource'), team_id: id } }),
    );
    await body(old('PUT', `/team/${id}`, adminKey, { body: { description: 'Paid' } }));
    expect(await body(old('POST', `/team/${id}/suspend`, adminKey, { raw: '""' }))).toMatchObject({
      suspended: true,
      team: { is_suspended: true },
    });
    expect((await old('PUT', `/team/${id}`, customerKey, { body: { name: 'x' } })).status).toBe(403);
    expect(await body(old('POST', `/team/${id}/unsuspend`, adminKey, { raw: '""' }))).toMatchObject({
      suspended: false,
    });

    const people = [
      { email: freshEmail('one'), role: roleId('team_member') },
      { email: freshEmail('two'), role: roleId('finance_manager'), name: 'Two' },
    ];
    expect(await old('POST', `/team/${id}/invite`, customerKey, { body: people })).toMatchObject({
      status: 200,
      body: {},
    });
    const again = await old('POST', `/team/${id}/invite`, customerKey, {
      body: [{ ...people[0], email: freshEmail('three') }, people[1]],
    });
    expect(again).toMatchObject({ status: 409, body: { code: 409 } });
    const found = await membersOf(id, '&page=4&search=ONE');
    expect(found).toMatchObject({
      count: 1,
      members: [{ status: 'invited', role: { name: 'team_member' }, user: { email: people[0]?.email } }],
    });
    const userId = found.members[0]?.user_id ?? '';
    await body(
      old('POST', `/team/${id}/member/${userId}/role`, customerKey, { body: { role_id: roleId('read_only_member') } }),
    );
    expect((await membersOf(id, '&search=one')).members[0]?.role.name).toBe('read_only_member');
    await body(old('POST', `/team/${id}/member/${userId}/status`, customerKey, { body: { status: 'removed' } }));
    expect((await membersOf(id)).count).toBe(2);

    expect(await body(old('GET', `/team/${id}/resource-overview`, customerKey))).toMatchObject({
      gpus: { used: 0, available: -1 },
    });
    expect(await body(old('GET', `/workspace?teamId=${id}&page=1`, customerKey))).toMatchObject({
      workspaces: [{ name: 'default' }],
    });
    // 409 while it is still being deleted after 8 s.
    const gone = await until(
      () => old('DELETE', `/team/${id}`),
      ({ status }) => status !== 409,
    );
    expect(gone).toMatchObject({ status: 200, body: {} });
    expect(await old('DELETE', `/team/${id}`)).toMatchObject({ status: 200, body: {} });
    expect((await old('GET', `/team/${id}`)).status).toBe(404);
  });

  it('gives people accounts: by a one-time link, with a password at once, and with another in its place', async () => {
    const { team, keys } = await createTeam(fresh('Customer'));
    const logIn = async (email: string, password: string) =>
      (
        await call('POST', '/user/login', {
          body: { email, password },
          headers: { origin: platformUrl, 'sec-fetch-site': 'same-origin' },
        })
      ).status;
    const [first, second] = ['correct horse battery staple', 'another good phrase'];
    const linked = { email: freshEmail('linked'), team_id: team.id, role_id: 'read_only_member' };
    const link = await old<{ url: string; should_onboard: boolean }>('POST', '/create-otl', adminKey, { body: linked });
    expect(link).toMatchObject({ status: 201, body: { should_onboard: true, two_fa_required: false } });
    const token = link.body.url.slice(link.body.url.indexOf('#') + 1);
    expect((await call('POST', '/user/link', { body: { token, password: first } })).status).toBe(200);
    const found = await membersOf(team.id, `&search=${encodeURIComponent(linked.email)}`);
    expect(found.members).toMatchObject([
      { status: 'active', role: { name: 'read_only_member' }, user: { onboarded: true } },
    ]);
    expect(await logIn(linked.email, first)).toBe(200);

    const email = freshEmail('shop');
    const user_details = { pre_onboard: true, onboard_config: { name: 'Shop', password: first } };
    const made = await old('POST', '/create-otl', adminKey, { body: { email, user_details } });
    expect(made).toMatchObject({ status: 201, body: { should_onboard: false } });
    expect(await logIn(email, first)).toBe(200);
    expect((await old('POST', '/onboard', adminKey, { body: { email, name: 'Shop', password: second } })).status).toBe(
      409,
    );

    const key = keys.team_owner ?? '';
    for (const who of [email, freshEmail('nobody')]) {
      expect((await old('POST', '/onboard', key, { body: { email: who, name: 'x', password: second } })).status).toBe(
        401,
      );
      const change = { email: who, name: 'x', old_password: first, new_password: second };
      expect((await old('POST', '/onboard', key, { body: change })).status).toBe(401);
    }
    expect((await old('POST', '/create-otl', key, { body: { email } })).status).toBe(403);
    expect(await logIn(email, first)).toBe(200);
  });

  it('a key of one team with the ids of another finds nothing', async () => {
    const ours = await createTeam(fresh('Ours'));
    const theirs = await createTeam(fresh('Theirs'), ['team_owner', 'member']);
    const key = ours.keys.team_owner ?? '';
    const { id } = theirs.team;
    const invitation = { body: [{ email: freshEmail('spy'), role: 'team_member' }] };
    const member = `/team/${id}/member/${theirs.ids.member}`;
    const calls: [string, string, CallOptions?][] = [
      ['GET', `/team/${id}`],
      ['PUT', `/team/${id}`, { body: { name: 'x' } }],
      ['DELETE', `/team/${id}`],
      ['GET', `/team/${id}/members`],
      ['POST', `/team/${id}/invite`, invitation],
      ['POST', `${member}/role`, { body: { role_id: 'team_admin' } }],
      ['POST', `${member}/status`, { body: { status: 'removed' } }],
      ['POST', `${member}/status`, { body: { status: 'active' } }],
      ['GET', `/team/${id}/resource-overview`],
      ['GET', `/workspace?teamId=${id}`],
    ];
    for (const [method, path, options] of calls) {
      expect([method, path, (await old(method, path, key, options)).status]).toEqual([method, path, 404]);
    }
    expect((await old('POST', `/team/${id}/suspend`, key)).status).toBe(403);
    expect((await old('GET', '/policy/image', key)).status).toBe(403);
    expect((await membersOf(id)).count).toBe(2);
  });

  it('reads what the mount serves, and is told where the rest is', async () => {
    const document = await call<{ openapi: string; paths: object }>('GET', '/openapi.json', { url: compatUrl });
    expect(document.body.openapi).toBe('3.1.0');
    expect(Object.keys(document.body.paths)).toContain('/api/policy/defaults');
    const images = await body(old<{ is_default: boolean; teams: object[] }[]>('GET', '/policy/image'));
    expect(images.filter(({ is_default }) => is_default)).toHaveLength(1);
    expect(await old('GET', '/catalogue')).toMatchObject({ status: 501, body: { code: 501 } });
    expect((await old('GET', '/roles', 'atl_no')).status).toBe(401);
  });
});
