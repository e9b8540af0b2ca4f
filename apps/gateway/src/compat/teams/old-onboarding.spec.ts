import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { passwords, teamBatches, users, type User, type WelcomeUser } from '@atoll/contracts/teams';
import { AppError, invalidField } from '@atoll/errors';
import { teamId } from '../../testing/team-fixture.js';
import { oldRoles } from '../roles-and-policies/roles.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';

const email = 'ada@example.com';
const password = 'correct horse battery staple';
const expires_at = '2026-10-02T00:00:00.000Z';

let compat: CompatUnderTest;
let operator: string;
let member: string;
beforeAll(async () => {
  compat = await startCompat();
  const { services } = compat.gateway;
  operator = services.key({ platform_admin: true });
  member = services.key();
  services.answer(teamBatches.welcome, ({ password: first }) => ({
    url: 'https://atoll.example.com/link#token',
    expires_at,
    has_password: first !== undefined,
    has_second_factor: true,
  }));
  services.answer(teamBatches.onboard, () => ({}));
  services.answer(passwords.change, () => ({}));
  services.answer(users.profile, () => ({ email, name: 'Ada' }) as User);
  services.answer(users.updateProfile, () => ({ email, name: 'New' }) as User);
});
afterAll(() => compat.close());

const post = (path: string, body: object, key = operator, headers: Record<string, string> = {}) =>
  compat.call<Record<string, unknown>>('POST', path, { key, body, headers });
const asked = (operation: { subject: string }) => compat.gateway.services.callsOf(operation).at(-1)?.input;

describe('a one-time link', () => {
  const team_admin = oldRoles.find(({ name }) => name === 'team_admin')?.id;
  const details = (pre_onboard: boolean) => ({ pre_onboard, onboard_config: { name: ' Ada ', password } });
  const cases: [string, object, Partial<WelcomeUser>][] = [
    ['alone', { team_id: null, role_id: null, send_email_invite: false, user_details: null, phone: 1 }, {}],
    ['for a member', { team_id: teamId, role_id: team_admin }, { team_id: teamId, role: 'team_admin' }],
    ['by mail', { team_id: teamId, send_email_invite: true }, { team_id: teamId, send_mail: true }],
    ['with an account', { user_details: details(true) }, { name: 'Ada', password }],
    ['with a name', { user_details: details(false) }, { name: 'Ada' }],
  ];
  it.each(cases)('is made %s', async (_what, more, input) => {
    const { status, body } = await post('/api/create-otl', { email: 'Ada@Example.com', ...more });
    const should_onboard = input.password === undefined;
    expect([status, body]).toEqual([
      201,
      { url: 'https://atoll.example.com/link#token', expires_at, should_onboard, two_fa_required: true },
    ]);
    expect(asked(teamBatches.welcome)).toEqual({ email, ...input });
  });

  it.each(['a-key', 'a key'])('is made whatever Idempotency-Key is sent, and not kept under it: %j', async (key) => {
    expect((await post('/api/create-otl', { email }, operator, { 'idempotency-key': key })).status).toBe(201);
    expect(compat.gateway.services.contextOf(teamBatches.welcome).idempotency).toBeUndefined();
  });

  it('is refused for a role or a team that is none, without an address or an account, and to all but the operator', async () => {
    const bad: [string, object][] = [
      ['email', { email: 'ada' }],
      ['role_id', { email, role_id: 'boss' }],
      ['role_id', { email, role_id: 'team_owner' }],
      ['team_id', { email, team_id: 7 }],
      ['user_details.onboard_config', { email, user_details: { pre_onboard: true } }],
      [
        'user_details.onboard_config.password',
        { email, user_details: { pre_onboard: true, onboard_config: { password: 'short' } } },
      ],
    ];
    for (const [field, body] of bad) {
      const answer = await post('/api/create-otl', body);
      expect([answer.status, answer.body.errors]).toMatchObject([400, [{ field }]]);
    }
    compat.gateway.services.answer(teamBatches.welcome, () => {
      throw invalidField('password', 'isCommonPassword', 'must not be a common password');
    });
    const common = { pre_onboard: true, onboard_config: { password: 'password12345' } };
    expect(await post('/api/create-otl', { email, user_details: common })).toMatchObject({
      status: 400,
      body: {
        message: 'user_details.onboard_config.password must not be a common password.',
        errors: [{ field: 'user_details.onboard_config.password', message: 'password must not be a common password' }],
      },
    });
    compat.gateway.services.answer(teamBatches.welcome, () => {
      throw new AppError('forbidden', 'Only a platform_admin may do this.');
    });
    expect((await post('/api/create-otl', { email }, member)).status).toBe(403);
  });
});

describe('onboarding', () => {
  it('sets a first password with the operator’s key, and is one call', async () => {
    expect(await post('/api/onboard', { email, name: 'Ada', password })).toMatchObject({ status: 200, body: {} });
    expect(asked(teamBatches.onboard)).toEqual({ email, name: 'Ada', password });
    compat.gateway.services.answer(teamBatches.onboard, () => {
      throw new AppError('conflict', 'This user has a password already.');
    });
    expect((await post('/api/onboard', { email, name: '', password })).status).toBe(409);
    expect((await post('/api/onboard', { email })).body.errors).toMatchObject([{ field: 'password' }]);
  });

  it('changes the own password with a key, and the name where it is another', async () => {
    const change = { email, name: 'Ada', old_password: password, new_password: 'another good phrase' };
    const renamed = () => compat.gateway.services.callsOf(users.updateProfile).length;
    expect((await post('/api/onboard', change, member)).status).toBe(200);
    expect([asked(passwords.change), renamed()]).toEqual([{ current: password, new: 'another good phrase' }, 0]);
    expect((await post('/api/onboard', { ...change, name: 'New' }, member)).status).toBe(200);
    expect([asked(users.updateProfile), renamed()]).toEqual([{ name: 'New' }, 1]);
    compat.gateway.services.answer(passwords.change, () => {
      throw invalidField('new', 'isCommonPassword', 'must not be a common password');
    });
    const message = 'new_password must not be a common password';
    expect(await post('/api/onboard', change, member)).toMatchObject({
      status: 400,
      body: { message: `${message}.`, errors: [{ field: 'new_password', message }] },
    });
  });

  it('is 401 for anybody else, in the same words for every address, and nothing is asked of it', async () => {
    const { services } = compat.gateway;
    const before = services.callsOf(passwords.change).length + services.callsOf(teamBatches.onboard).length;
    const answers = [];
    for (const who of [email, 'nobody@example.com'])
      answers.push(await post('/api/onboard', { email: who, password }, member));
    const change = { old_password: password, new_password: 'another good phrase' };
    for (const who of ['bob@example.com', 'nobody@example.com'])
      answers.push(await post('/api/onboard', { email: who, ...change }, member));
    expect(new Set(answers.map(({ status, body }) => `${status} ${String(body.message)}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(401);
    expect(services.callsOf(passwords.change).length + services.callsOf(teamBatches.onboard).length).toBe(before);
    expect(JSON.stringify(compat.gateway.logged())).not.toContain(password);
  });
});
