import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { regions } from '@atoll/contracts/gpuaas';
import {
  imagePolicies,
  members,
  teamBatches,
  teams,
  workspaces,
  type FoundMember,
  type ImagePolicy,
  type NamedTeam,
  type Workspace,
} from '@atoll/contracts/teams';
import { invalidField } from '@atoll/errors';
import { aTeam, teamId } from '../../testing/team-fixture.js';
import { oldRoles } from '../roles-and-policies/roles.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';

const userId = '01890000-0000-7000-8000-000000000001';
const policyId = '01890000-0000-7000-8000-0000000000aa';
const path = `/api/team/${teamId}`;

let compat: CompatUnderTest;
let operator: string;
let owner: string;
beforeAll(async () => {
  compat = await startCompat();
  const { services } = compat.gateway;
  operator = services.key({ platform_admin: true });
  owner = services.key();
  services.answer(teams.get, () => aTeam({ is_suspended: true }));
  services.answer(teams.update, () => aTeam({ is_suspended: true }));
  services.answer(teamBatches.create, () => aTeam({ is_suspended: true }));
  services.answer(imagePolicies.assign, () => aPolicy(1));
  services.answer(teamBatches.addMembers, () => ({ members: [] }));
  services.answer(members.remove, () => ({}));
});
afterAll(() => compat.close());

const lastInput = (operation: { subject: string }): unknown => compat.gateway.services.callsOf(operation).at(-1)?.input;
const roleId = (name: string): string => oldRoles.find((role) => role.name === name)?.id ?? '';
const idOf = (at: number): string => `01890000-0000-7000-8000-${String(at).padStart(12, '0')}`;

function aPolicy(at: number): ImagePolicy {
  const objects = [{ id: idOf(9), name: 'nginx', reference: 'docker.io/library/nginx:1.29' }];
  return {
    id: idOf(at),
    name: `p${at}`,
    description: '',
    is_default: at === 150,
    objects,
    created_at: '2026-10-01T00:00:00.000Z',
  };
}

const found = (overrides: Partial<FoundMember> = {}): FoundMember => ({
  user_id: userId,
  email: 'ada@example.com',
  name: 'Ada',
  role: 'team_owner',
  status: 'active',
  api_key: null,
  api_token: false,
  expiry_date: null,
  ip_whitelist: '',
  created_at: '2026-10-01T00:00:00.000Z',
  joined_at: '2026-10-02T00:00:00.000Z',
  timezone: 'Asia/Kathmandu',
  second_factor: true,
  ...overrides,
});

describe('a team', () => {
  it('is shown as on the main API, and besides in the places where old clients look', async () => {
    const { status, body } = await compat.call<Record<string, unknown>>('GET', path, { key: owner });
    const team = { id: teamId, name: 'Research', description: '', is_suspended: true };
    expect([status, body]).toEqual([200, { ...aTeam({ is_suspended: true }), suspended: true, team }]);
  });

  it('of the operator belongs to the first who may manage it, not to the operator', async () => {
    const people = [
      { email: 'bob@example.com', name: 'Bob', role: roleId('read_only_member') },
      { email: 'ada@example.com', name: 'Ada', role: 'team_admin', phone: '1' },
    ];
    expect(
      (await compat.call('POST', '/api/team', { key: operator, body: { name: 'A', members: people } })).status,
    ).toBe(200);
    expect(lastInput(teamBatches.create)).toEqual({
      name: 'A',
      description: '',
      members: [
        { email: 'bob@example.com', name: 'Bob', role: 'viewer' },
        { email: 'ada@example.com', name: 'Ada', role: 'team_owner' },
      ],
    });
    await compat.call('POST', '/api/team', { key: owner, body: { name: 'A', members: people.slice(1) } });
    expect(lastInput(teamBatches.create)).toMatchObject({ members: [{ role: 'team_admin' }] });
  });

  it.each([{ image_policy_id: policyId }, { general: { image_policy_id: policyId } }])(
    'gets its image policy in one step: %j',
    async (given) => {
      await compat.call('POST', '/api/team', {
        key: operator,
        body: { name: 'A', color: '#fff', members: [], ...given },
      });
      expect(lastInput(teamBatches.create)).toEqual({
        name: 'A',
        description: '',
        members: [],
        image_policy_id: policyId,
      });
      await compat.call('PUT', path, { key: operator, body: given });
      expect(lastInput(imagePolicies.assign)).toEqual({ id: policyId, team_id: teamId });
    },
  );

  it('keeps a name that is not sent', async () => {
    await compat.call('PUT', path, { key: owner, body: { description: 'x', name: null } });
    expect(lastInput(teams.update)).toEqual({ team_id: teamId, description: 'x' });
  });

  it('that is deleted answers {}, or 409 with what is left', async () => {
    const { services } = compat.gateway;
    services.answer(teamBatches.end, () => ({ deleting: null }));
    expect(await compat.call('DELETE', path, { key: owner })).toMatchObject({ status: 200, body: {} });
    const remaining = [
      { kind: 'pod', count: 2 },
      { kind: 'gpuaas', count: null },
    ];
    const deleting = { id: teamId, status: 'deleting' as const, remaining };
    services.answer(teamBatches.end, () => ({ deleting }));
    const left = await compat.call('DELETE', path, { key: owner });
    expect([left.status, left.body.message]).toEqual([409, expect.stringContaining('2 pod, what gpuaas holds')]);
  });
});

describe('members', () => {
  it('are listed with role and user; a team_owner as team_admin', async () => {
    compat.gateway.services.answer(teamBatches.findMembers, () => ({
      data: [found(), found({ status: 'invited', role: 'member', joined_at: null, second_factor: false })],
      pagination: { page: 3, limit: 1000, total: 2 },
    }));
    const { body } = await compat.call<{ members: object[]; count: number }>(
      'GET',
      `${path}/members?page=7&itemsPerPage=5000&search=a`,
      {
        key: owner,
      },
    );
    expect(lastInput(teamBatches.findMembers)).toEqual({ team_id: teamId, page: 7, limit: 1000, search: 'a' });
    expect(body.count).toBe(2);
    expect(body.members).toMatchObject([
      {
        role_id: roleId('team_admin'),
        status: 'active',
        invited_at: '2026-10-01T00:00:00.000Z',
        joined_at: '2026-10-02T00:00:00.000Z',
        user: { onboarded: true, two_factor_enabled: true },
      },
      { role: { name: 'team_member' }, status: 'invited', joined_at: null, user: { id: userId, onboarded: false } },
    ]);
  });

  it('are invited by a list, each by id or name of a role, and named by the address without a name', async () => {
    const body = [
      { email: 'Ada@Example.com', role: roleId('finance_manager') },
      { email: 'bob@example.com', role: 'member', name: ' Bob ' },
    ];
    expect(await compat.call('POST', `${path}/invite`, { key: owner, body })).toMatchObject({ status: 200, body: {} });
    expect(lastInput(teamBatches.addMembers)).toEqual({
      team_id: teamId,
      members: [
        { email: 'ada@example.com', name: 'ada', role: 'billing_viewer' },
        { email: 'bob@example.com', name: 'Bob', role: 'member' },
      ],
    });
  });

  it.each<[unknown, string]>([
    [{}, ''],
    [[], ''],
    ['""', ''],
    [[{ email: 'x', role: 'member' }], '0.email'],
    [[{ email: 'a@example.com', role: 'king' }], '0.role'],
    [[{ email: 'a@example.com', role: 'team_owner' }], '0.role'],
    [[{ email: 'a@example.com', role: 1 }], '0.role'],
    [[1], ''],
  ])('are not invited by %j', async (body, field) => {
    const answer = await compat.call('POST', `${path}/invite`, { key: owner, body });
    expect([answer.status, answer.body.errors[0]?.field ?? 'none']).toEqual([400, expect.stringContaining(field)]);
    expect(JSON.stringify(answer.body)).not.toContain('members');
  });

  it('that the service refuses are named by their places in the list', async () => {
    const { services } = compat.gateway;
    services.answer(teamBatches.addMembers, () => {
      throw invalidField('members.1.email', 'isUnique', 'must not be named twice');
    });
    const body = ['ada', 'bob'].map((name) => ({ email: `${name}@example.com`, role: 'member' }));
    const message = '1.email must not be named twice';
    expect(await compat.call('POST', `${path}/invite`, { key: owner, body })).toMatchObject({
      status: 400,
      body: { message: `${message}.`, errors: [{ field: '1.email', message }] },
    });
  });

  it('have their roles changed by id or name', async () => {
    compat.gateway.services.answer(teamBatches.changeRole, () => found());
    for (const role_id of [roleId('team_admin'), 'team_admin']) {
      expect(
        (await compat.call('POST', `${path}/member/${userId}/role`, { key: owner, body: { role_id } })).status,
      ).toBe(200);
      expect(lastInput(teamBatches.changeRole)).toEqual({ team_id: teamId, user_id: userId, role: 'team_admin' });
    }
  });

  it('that are removed go; active changes nothing', async () => {
    const removals = () => compat.gateway.services.callsOf(members.remove).length;
    const before = removals();
    expect(
      (await compat.call('POST', `${path}/member/${userId}/status`, { key: owner, body: { status: 'active' } })).status,
    ).toBe(200);
    expect(removals()).toBe(before);
    expect(
      (await compat.call('POST', `${path}/member/${userId}/status`, { key: owner, body: { status: 'removed' } }))
        .status,
    ).toBe(200);
    expect(lastInput(members.remove)).toEqual({ team_id: teamId, user_id: userId });
    expect(
      (await compat.call('POST', `${path}/member/${userId}/status`, { key: owner, body: { status: 'frozen' } })).status,
    ).toBe(400);
  });
});

describe('a page of workspaces', () => {
  it.each([
    [0, 10, 0, 10],
    [1, 10, 10, 10],
    [24, 10, 240, 3],
    [25, 10, 240, 3],
    [1_000_000, 10, 240, 3],
    [1, 200, 200, 43],
    [9, 500, 0, 243],
  ])('%i of %i has the rows from %i, %i of them: past the end, the last', async (page, itemsPerPage, from, count) => {
    const all = Array.from({ length: 243 }, (_, at): Workspace => ({ id: idOf(at), name: `w${at}`, team_id: teamId }));
    compat.gateway.services.answer(workspaces.list, ({ page: at = 0, limit = 10 }) => ({
      data: all.slice(at * limit, (at + 1) * limit),
      pagination: { page: at, limit, total: all.length },
    }));
    const url = `/api/workspace?teamId=${teamId}&page=${page}&itemsPerPage=${itemsPerPage}`;
    const { body } = await compat.call<{ workspaces: { id: string }[] }>('GET', url, { key: owner });
    expect(body.workspaces.map(({ id }) => id)).toEqual(all.slice(from, from + count).map(({ id }) => id));
  });
});

describe('roles and policies', () => {
  const named = Array.from({ length: 1500 }, (_, at): NamedTeam => ({
    id: idOf(at),
    name: `t${at}`,
    policy_id: idOf(150),
  }));
  beforeAll(() => {
    const { services } = compat.gateway;
    const policies = Array.from({ length: 151 }, (_, at) => aPolicy(at));
    services.answer(imagePolicies.list, ({ page = 1, limit = 10 }) => ({
      data: policies.slice((page - 1) * limit, page * limit),
      pagination: { page, limit, total: policies.length },
    }));
    services.answer(teamBatches.names, ({ team_id = '' }) => ({
      teams: named.filter(({ id }) => id > team_id).slice(0, 1000),
    }));
    const region = {
      region_id: '1',
      region_name: 'eu',
      city: 'Oslo',
      country: 'Norway',
      created_at: '2026-10-01T00:00:00.000Z',
    };
    services.answer(regions.list, () => ({ data: [region], pagination: { page: 1, limit: 100, total: 1 } }));
  });

  it('roles are four, and their ids stand for ever', async () => {
    const { body } = await compat.call<{ roles: { id: string; name: string }[] }>('GET', '/api/roles', { key: owner });
    expect(body.roles.map(({ id, name }) => `${id.slice(-2)} ${name}`)).toEqual([
      '01 team_admin',
      '02 team_member',
      '03 read_only_member',
      '04 finance_manager',
    ]);
  });

  it('the defaults are one of each kind', async () => {
    const { body } = await compat.call<{ type: string; id: string }[]>('GET', '/api/policy/defaults', {
      key: operator,
    });
    expect(body.map(({ type }) => type)).toEqual(['pricing', 'resource', 'service', 'instance-type', 'image']);
    expect(body.at(-1)?.id).toBe(idOf(150));
  });

  it('image policies are listed whole with their teams, none asked for once a row', async () => {
    const before = compat.gateway.services.calls.length;
    const { body } = await compat.call<{ teams: object[] }[]>('GET', '/api/policy/image', { key: operator });
    expect([body.length, body[150]?.teams.length, body[0]?.teams.length]).toEqual([151, 1500, 0]);
    expect(compat.gateway.services.calls.length - before).toBeLessThan(8);
  });

  it('the resource policy shows every region and team', async () => {
    const [policy] = (await compat.call<{ id: string }[]>('GET', '/api/resource-policy', { key: owner })).body;
    const { body } = await compat.call<Record<string, unknown[]>>('GET', `/api/resource-policy/${policy?.id}`, {
      key: operator,
    });
    expect(body.teams).toHaveLength(1500);
    expect(body.regions).toMatchObject([
      { region_id: 1, access: 'unlimited', region_details: { id: 1, country_code: 'NO' } },
    ]);
    expect(
      (await compat.call('PUT', `/api/resource-policy/${policy?.id}`, { key: operator, body: { regions: 1 } })).status,
    ).toBe(200);
    expect((await compat.call('PUT', `/api/resource-policy/${policy?.id}`, { key: operator })).status).toBe(200);
    expect(
      compat.gateway.logged().filter(({ msg }) => /every team may use every region/.test(String(msg))),
    ).toHaveLength(1);
  });

  it.each(['/api/pricing-policy', '/api/policy/service', '/api/policy/instance-type', '/api/resource-policy'])(
    'of the kind %s there is one',
    async (url) =>
      expect(await compat.call('GET', url, { key: owner })).toMatchObject({ status: 200, body: { length: 1 } }),
  );

  it('an unknown policy is a 404, and who is no operator assigns none', async () => {
    const body = { policy_id: policyId, team_id: teamId };
    expect((await compat.call('POST', '/api/resource-policy/assign-team', { key: operator, body })).status).toBe(404);
    expect(
      (await compat.call('POST', `/api/pricing-policy/${policyId}/assign-team`, { key: operator, body })).status,
    ).toBe(404);
    expect((await compat.call('GET', `/api/resource-policy/${policyId}`, { key: operator })).status).toBe(404);
    expect((await compat.call('POST', '/api/resource-policy/assign-team', { key: owner, body })).status).toBe(403);
    const [pricing] = (await compat.call<{ policy: { id: string } }[]>('GET', '/api/pricing-policy', { key: operator }))
      .body;
    expect(
      (await compat.call('POST', `/api/pricing-policy/${pricing?.policy.id}/assign-team`, { key: operator, body }))
        .status,
    ).toBe(200);
  });
});
