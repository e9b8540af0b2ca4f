import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiKey, digestApiKey, fingerprintOfPepper } from '@atoll/api-keys';
import { credentials, members, teams } from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { errorOf, pepper, TeamsFixture } from '../teams-fixture.js';
import { credentialQuery } from './credential.service.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

it('a gateway learns whether it has the pepper of the teams service', async () => {
  const compare = (of: string) =>
    fixture.ask(
      credentials.comparePepper,
      { fingerprint: fingerprintOfPepper(of).toString('hex') },
      systemContext('gateway'),
    );
  expect(await compare(pepper)).toEqual({ is_same: true });
  expect(await compare('another pepper')).toEqual({ is_same: false });
});

describe('verifying a key', () => {
  it("answers for the operator's key: the user as a whole, who needs no list of teams, no expiry", async () => {
    await fixture.createTeam();
    const found = await fixture.verify(fixture.admin);
    expect(found).toMatchObject({
      scope: 'user',
      platform_admin: true,
      timezone: 'UTC',
      teams: [],
      expiry_date: null,
      ip_whitelist: '',
    });
  });

  it('answers for the key of a user as a whole: all of their teams that are', async () => {
    const made = await fixture.createTeam('member');
    const gone = await fixture.createTeam();
    const [user_id = ''] = made.userIds;
    for (const { team } of [await fixture.createTeam(), gone]) {
      await fixture.call(fixture.admin, members.add, {
        team_id: team.id,
        email: made.emails[0] ?? '',
        name: 'x',
        role: 'viewer',
      });
    }
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.team.id });
    const found = await fixture.verify(await fixture.wholeKeyOf(user_id));
    expect(found).toMatchObject({ user_id, scope: 'user', platform_admin: false });
    expect(found.teams.map(({ role }) => role)).toEqual(['member', 'viewer']);
  });

  it('answers for the key of a member: that team, with the role of now, and once the member has accepted the zone of now', async () => {
    const { team, keys, userIds } = await fixture.createTeam('member');
    const [key = ''] = keys;
    await fixture.call(fixture.admin, members.changeRole, {
      team_id: team.id,
      user_id: userIds[0] ?? '',
      role: 'billing_viewer',
    });
    await fixture.query(`UPDATE "user" SET timezone = 'Asia/Kathmandu' WHERE id = $1`, [userIds[0]]);
    expect((await fixture.verify(key)).timezone).toBe('UTC');
    await fixture.query(`UPDATE membership SET status = 'active' WHERE user_id = $1`, [userIds[0]]);
    expect(await fixture.verify(key)).toEqual({
      key_id: expect.any(String),
      user_id: userIds[0],
      scope: 'membership',
      platform_admin: false,
      timezone: 'Asia/Kathmandu',
      teams: [{ team_id: team.id, role: 'billing_viewer', lacks_second_factor: false }],
      expiry_date: team.members[1]?.expiry_date,
      ip_whitelist: '',
    });
  });

  it('knows no key that was never issued, under another pepper, revoked, or of a team that is gone', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const [key = ''] = keys;
    const verify = (digest: string) => errorOf(fixture.ask(credentials.verify, { digest }, systemContext('gateway')));
    expect((await verify(digestApiKey(createApiKey(), pepper))).code).toBe('unauthenticated');
    expect((await verify(digestApiKey(key, 'another pepper'))).code).toBe('unauthenticated');
    await fixture.call(key, teams.delete, { team_id: team.id });
    expect((await verify(digestApiKey(key, pepper))).code).toBe('unauthenticated');
  });

  it('is for a service alone', async () => {
    const context = await fixture.contextOf(fixture.admin, credentials.verify, {});
    const refused = await errorOf(
      fixture.ask(credentials.verify, { digest: digestApiKey(fixture.admin, pepper) }, context),
    );
    expect(refused.code).toBe('forbidden');
  });

  it.each(['', 'z'.repeat(64), 'a'.repeat(63), `${'a'.repeat(63)}\0`])('refuses %j', async (digest) => {
    expect((await errorOf(fixture.ask(credentials.verify, { digest }, systemContext('gateway')))).code).toBe(
      'invalid_input',
    );
  });

  it('is one look-up in the index of digests, however many keys there are', async () => {
    const [user] = await fixture.query<{ id: string }>('SELECT id FROM "user" LIMIT 1');
    await fixture.query(
      `INSERT INTO api_key (id, user_id, digest, mask) SELECT gen_random_uuid(), $1, sha256(n::text::bytea), '' FROM generate_series(1, 3000) n`,
      [user?.id],
    );
    await fixture.query('ANALYZE api_key');
    const plan = await fixture.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN (COSTS OFF) ${credentialQuery.replace('$1', `'\\x00'`)}`,
    );
    const lines = plan.map((row) => row['QUERY PLAN']);
    expect(lines.filter((line) => line.includes('on api_key'))).toEqual([
      expect.stringMatching(/Index Scan using api_key_digest_key on api_key/),
    ]);
  });
});
