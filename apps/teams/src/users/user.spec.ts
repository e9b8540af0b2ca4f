import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { maskApiKey } from '@atoll/api-keys';
import { teamCapacityChanged } from '@atoll/contracts/gpuaas';
import { members, teams, users, type KeyTerms, type User } from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { setTimeout as delay } from 'node:timers/promises';
import { errorOf, operatorEmail, TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const profile = (key: string): Promise<User> => fixture.call(key, users.profile, {});

describe('a profile', () => {
  it('shows a user with all of their teams', async () => {
    const { team } = await fixture.createTeam();
    const shown = await profile(fixture.admin);
    expect(shown).toEqual({
      id: (await fixture.verify(fixture.admin)).user_id,
      email: operatorEmail,
      name: 'Administrator',
      timezone: 'UTC',
      role: 'platform_admin',
      teams: expect.arrayContaining([{ id: team.id, name: 'Research', role: 'team_owner', status: 'active' }]),
      card_count: 0,
      second_factor: { is_set: false, recovery_codes: 0, passkeys: 0 },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
  });

  it('shows to a key of one team that team and no platform', async () => {
    const { team } = await fixture.createTeam();
    const shown = await profile(team.members[0]?.api_key ?? '');
    expect(shown).toMatchObject({
      email: operatorEmail,
      role: 'user',
      teams: [{ id: team.id, name: 'Research', role: 'team_owner', status: 'active' }],
    });
    expect(shown.second_factor).toBeNull();
  });

  it('leaves out teams that are gone', async () => {
    const { team } = await fixture.createTeam();
    await fixture.call(fixture.admin, teams.delete, { team_id: team.id });
    expect((await profile(fixture.admin)).teams.map(({ id }) => id)).not.toContain(team.id);
  });

  it('is nothing a service has', async () => {
    expect((await errorOf(fixture.ask(users.profile, {}, systemContext('billing')))).code).toBe('forbidden');
  });

  it('changes in name and zone, which holds for the next call', async () => {
    expect(await fixture.call(fixture.admin, users.updateProfile, { name: 'Opera Tor' })).toMatchObject({
      name: 'Opera Tor',
      timezone: 'UTC',
    });
    expect(await fixture.call(fixture.admin, users.updateProfile, { timezone: 'Asia/Kathmandu' })).toMatchObject({
      name: 'Opera Tor',
      timezone: 'Asia/Kathmandu',
    });
    expect((await fixture.verify(fixture.admin)).timezone).toBe('Asia/Kathmandu');
    expect(fixture.credentialsChanged).toContain((await fixture.verify(fixture.admin)).user_id);
    expect((await errorOf(fixture.call(fixture.admin, users.updateProfile, {}))).code).toBe('invalid_input');
  });

  it.each([
    'Asia/Kathmandu',
    'Asia/Katmandu',
    'Asia/Calcutta',
    'UTC',
    'Europe/Kyiv',
    'America/Argentina/Buenos_Aires',
    'Etc/GMT+5',
  ])('takes the zone %s and keeps it as written', async (timezone) =>
    expect((await fixture.call(fixture.admin, users.updateProfile, { timezone })).timezone).toBe(timezone),
  );

  it.each([
    '+05:45',
    '-08',
    'UTC+5',
    'asia/kathmandu',
    'ASIA/KATHMANDU',
    'Mars/Olympus',
    'Asia/Kathmandu ',
    '',
    'posix/UTC',
    '../UTC',
    'localtime',
  ])('refuses the zone %j', async (timezone) => {
    const refused = await errorOf(fixture.call(fixture.admin, users.updateProfile, { timezone }));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'timezone']);
  });
});

describe('a key of a user as a whole', () => {
  it('is issued and revoked by its own user, replaces the one before, and acts in every team', async () => {
    const made = await fixture.createTeam('member');
    const first = await fixture.wholeKeyOf(made.userIds[0] ?? '');
    const second = await fixture.call(
      first,
      users.issueKey,
      { ip_whitelist: '127.0.0.1 , ::1', grace_seconds: 600 },
      'whole-1',
    );
    expect(second).toMatchObject({ api_token: true, ip_whitelist: '127.0.0.1,::1' });
    expect(
      await fixture.call(first, users.issueKey, { ip_whitelist: '127.0.0.1 , ::1', grace_seconds: 600 }, 'whole-1'),
    ).toEqual({
      ...second,
      api_key: maskApiKey(second.api_key),
    });
    expect((await errorOf(fixture.call(first, users.issueKey, {}))).message).toContain('was replaced');
    expect(await fixture.call(first, teams.create, { name: 'By the replaced key' })).toMatchObject({
      name: 'By the replaced key',
    });
    expect(await fixture.call(second.api_key, teams.create, { name: 'By the key' })).toMatchObject({
      name: 'By the key',
    });
    expect(Date.parse((await fixture.verify(first)).expiry_date ?? '')).toBeLessThanOrEqual(Date.now() + 600_000);
    await fixture.call(second.api_key, users.revokeKey, {});
    for (const key of [first, second.api_key])
      expect((await errorOf(fixture.verify(key))).code).toBe('unauthenticated');
    expect((await fixture.verify(made.keys[0] ?? '')).scope).toBe('membership');
  });

  it('keeps the addresses of the one that it replaces, unless others are sent, and never those of another user', async () => {
    const made = await fixture.createTeam('member', 'member');
    const ofAnother = await fixture.wholeKeyOf(made.userIds[1] ?? '');
    let key = await fixture.wholeKeyOf(made.userIds[0] ?? '');
    const replace = async (terms: KeyTerms): Promise<string> => {
      const issued = await fixture.call(key, users.issueKey, terms);
      key = issued.api_key;
      return issued.ip_whitelist;
    };
    expect(await replace({ ip_whitelist: '203.0.113.0/24' })).toBe('203.0.113.0/24');
    await fixture.call(ofAnother, users.issueKey, { ip_whitelist: '198.51.100.0/24' });
    expect(await replace({})).toBe('203.0.113.0/24');
    expect((await fixture.verify(key)).ip_whitelist).toBe('203.0.113.0/24');
    expect(await replace({ ip_whitelist: '' })).toBe('');
    expect(await replace({})).toBe('');
  });

  it('never expires where it replaces a key of the operator that never does, unless an expiry_date is sent', async () => {
    const [userId = ''] = (await fixture.createTeam('member')).userIds;
    const setOperator = (is: boolean) =>
      fixture.query('UPDATE "user" SET platform_admin = $2 WHERE id = $1', [userId, is]);
    const makeEndless = () =>
      fixture.query('UPDATE api_key SET expiry_date = NULL WHERE user_id = $1 AND team_id IS NULL', [userId]);
    const dayMs = 86_400_000;
    let key = await fixture.wholeKeyOf(userId);
    const daysOfNext = async (terms: KeyTerms): Promise<number | null> => {
      key = (await fixture.call(key, users.issueKey, terms)).api_key;
      const { expiry_date: expiry } = await fixture.verify(key);
      return expiry === null ? null : Math.round((Date.parse(expiry) - Date.now()) / dayMs);
    };
    await setOperator(true);
    expect(await daysOfNext({})).toBe(90);
    await makeEndless();
    expect(await daysOfNext({ grace_seconds: 600 })).toBeNull();
    expect(await daysOfNext({})).toBeNull();
    expect(await daysOfNext({ expiry_date: new Date(Date.now() + dayMs).toISOString() })).toBe(1);
    expect(await daysOfNext({})).toBe(90);
    await setOperator(false);
    await makeEndless();
    expect(await daysOfNext({})).toBe(90);
  });

  it('is out of reach for a key of one team: it changes nothing of its user, and says what would', async () => {
    const { keys } = await fixture.createTeam('team_owner');
    const [key = ''] = keys;
    const attempts = [
      fixture.call(key, users.updateProfile, { name: 'Taken over' }),
      fixture.call(key, users.issueKey, {}),
      fixture.call(key, users.revokeKey, {}),
    ];
    for (const refused of await Promise.all(attempts.map(errorOf))) {
      expect([refused.code, refused.message]).toEqual([
        'forbidden',
        expect.stringMatching(/limited to one team.*key that is not limited to a team/),
      ]);
    }
  });
});

describe('what the gpuaas service tells of capacity', () => {
  const tell = (team_id: string, revision: number, gpu_ids: number[], has_pool_subscription: boolean) =>
    fixture.tell(teamCapacityChanged, { team_id, revision, gpu_ids, has_pool_subscription });

  it('shows as card_count and has_pool_subscription; of facts out of order the greatest revision holds', async () => {
    const [one, other] = [await fixture.createTeam('member'), await fixture.createTeam('member')];
    await fixture.call(fixture.admin, members.add, {
      team_id: other.team.id,
      email: one.emails[0] ?? '',
      name: 'x',
      role: 'viewer',
    });
    await tell(one.team.id, 2, [1, 2, 9_007_199_254_740_991], true);
    await tell(other.team.id, 1, [2, 3], true);
    await tell(one.team.id, 1, [7, 8, 9, 10], false);
    const key = await fixture.wholeKeyOf(one.userIds[0] ?? '');
    while ((await profile(key)).card_count !== 4) await delay(10);
    expect(await profile(key)).toMatchObject({ card_count: 4 });
    expect(await profile(one.keys[0] ?? '')).toMatchObject({ card_count: 3 });
    expect(await fixture.call(one.keys[0] ?? '', teams.get, { team_id: one.team.id })).toMatchObject({
      has_pool_subscription: true,
    });
    expect((await errorOf(fixture.call(fixture.admin, teams.delete, { team_id: one.team.id }))).message).toContain(
      'pool subscription',
    );
  });
});

describe('keys of one user that many replicas make at once', () => {
  it('leave one that is live, however they meet', async () => {
    fixture.asManyReplicas();
    const { userIds } = await fixture.createTeam('member');
    const [userId = ''] = userIds;
    const key = await fixture.wholeKeyOf(userId);
    const live = async (): Promise<number> =>
      (
        await fixture.query('SELECT FROM api_key WHERE user_id = $1 AND team_id IS NULL AND revoked_at IS NULL', [
          userId,
        ])
      ).length;
    // What a gateway said of the key before any of them.
    const context = await fixture.contextOf(key, users.issueKey, {});
    const issue = () => fixture.ask(users.issueKey, {}, context);
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, issue));
    // The first revokes the key by which the others ask.
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await live()).toBe(1);
  });
});
