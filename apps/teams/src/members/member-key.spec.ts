import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { maskApiKey } from '@atoll/api-keys';
import { members, teams, users, type IssueMemberKey, type TeamMember } from '@atoll/contracts/teams';
import { timeoutFactor } from '@atoll/testing';
import { contextOf, logIn, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

const dayMs = 86_400_000;

let fixture: TeamsFixture;
let team_id = '';
let user_id = '';
let owner = '';
let first = '';
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

async function freshTeam(): Promise<void> {
  const made = await fixture.createTeam('team_owner', 'member');
  team_id = made.team.id;
  user_id = made.userIds[1] ?? '';
  [owner = '', first = ''] = made.keys;
}

const issue = (
  terms: Omit<IssueMemberKey, 'team_id' | 'user_id'> = {},
  key = owner,
  idempotencyKey?: string,
): Promise<TeamMember> => fixture.call(key, members.issueKey, { team_id, user_id, ...terms }, idempotencyKey);
const opens = async (key: string): Promise<boolean> => {
  try {
    return (await fixture.call(key, teams.get, { team_id })).id === team_id;
  } catch {
    return false;
  }
};
const shown = async (): Promise<TeamMember | undefined> =>
  (await fixture.call(owner, teams.get, { team_id })).members.find((member) => member.user_id === user_id);

describe('issuing a key', () => {
  it('shows it once, in full, and replaces the old one at once where no grace is given', async () => {
    await freshTeam();
    const issued = await issue({ ip_whitelist: ' 203.0.113.0/24 ,2001:db8::1 ' }, owner, 'issue-1');
    expect(issued).toMatchObject({ user_id, api_token: true, ip_whitelist: '203.0.113.0/24,2001:db8::1' });
    expect(Math.round((Date.parse(issued.expiry_date ?? '') - Date.now()) / dayMs)).toBe(90);
    expect([await opens(first), await opens(issued.api_key ?? '')]).toEqual([false, true]);
    const masked = { ...issued, api_key: maskApiKey(issued.api_key ?? '') };
    expect(await shown()).toEqual(masked);
    expect(await issue({ ip_whitelist: ' 203.0.113.0/24 ,2001:db8::1 ' }, owner, 'issue-1')).toEqual(masked);
    expect(fixture.credentialsChanged).toContain(user_id);
  });

  it('of one’s own takes a log-in of the last 10 minutes, of another member a session of any age', async () => {
    await freshTeam();
    const person = await somebody(fixture);
    await fixture.query(
      `INSERT INTO membership (id, team_id, user_id, role, status) VALUES (gen_random_uuid(), $1, $2, 'team_owner', 'active')`,
      [team_id, person.userId],
    );
    const session = await logIn(fixture, person);
    const issueFor = async (user: string) =>
      fixture.ask(members.issueKey, { team_id, user_id: user }, await contextOf(fixture, session));
    await issueFor(person.userId);
    await fixture.query(`UPDATE session SET created_at = created_at - interval '11 minutes' WHERE id = $1`, [
      session.session_id,
    ]);
    expect((await errorOf(issueFor(person.userId))).message).toBe(
      'This needs a log-in within the last 10 minutes. Log in again.',
    );
    await issueFor(user_id);
  });

  it('lets the old key live for the grace, never past its own expiry', async () => {
    await freshTeam();
    const inAMinute = new Date(Date.now() + 60_000).toISOString();
    const second = await issue({ grace_seconds: 604_800, expiry_date: inAMinute });
    const third = await issue({ grace_seconds: 3600 });
    const [oldest, older] = await Promise.all([fixture.verify(first), fixture.verify(second.api_key ?? '')]);
    expect(Date.parse(oldest.expiry_date ?? '')).toBeLessThanOrEqual(Date.now() + 3_600_000);
    expect(older.expiry_date).toBe(inAMinute);
    for (const key of [first, second.api_key, third.api_key]) expect(await opens(key ?? '')).toBe(true);
    expect((await shown())?.api_key).toBe(maskApiKey(third.api_key ?? ''));
    const last = await issue();
    for (const key of [first, second.api_key, third.api_key]) expect(await opens(key ?? '')).toBe(false);
    expect(await opens(last.api_key ?? '')).toBe(true);
  });

  it('leaves one live key of two that are issued at once without grace', async () => {
    await freshTeam();
    const issued = await Promise.all(Array.from({ length: 5 }, () => issue()));
    const live = await Promise.all(issued.map(({ api_key }) => opens(api_key ?? '')));
    expect(live.filter(Boolean)).toHaveLength(1);
    expect((await shown())?.api_key).toBe(maskApiKey(issued[live.indexOf(true)]?.api_key ?? ''));
  });

  it.each([
    [{ expiry_date: '2020-01-01T00:00:00Z' }, 'expiry_date'],
    [{ expiry_date: new Date(Date.now() + 366 * dayMs).toISOString() }, 'expiry_date'],
    [{ expiry_date: '2026-W01-1T00:00:00Z' }, 'expiry_date'],
    [{ expiry_date: '2026-02-30T00:00:00Z' }, 'expiry_date'],
    [{ ip_whitelist: '203.0.113.0/33' }, 'ip_whitelist'],
    [{ grace_seconds: 604_801 }, 'grace_seconds'],
  ])('refuses %j and keeps the old key', async (terms, path) => {
    await freshTeam();
    const refused = await errorOf(issue(terms));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
    expect(await opens(first)).toBe(true);
  });

  it('is in the hands of the member as well, and of no other member', async () => {
    await freshTeam();
    const rotated = await issue({}, first);
    expect([await opens(first), await opens(rotated.api_key ?? '')]).toEqual([false, true]);
    const [added] = [
      await fixture.call(owner, members.add, { team_id, email: 'nosy@example.com', name: 'Nosy', role: 'member' }),
    ];
    expect((await errorOf(issue({}, added?.api_key ?? ''))).code).toBe('forbidden');
  });
});

describe('the addresses of a key', () => {
  it('go on with the key that replaces it, unless others are sent', async () => {
    await freshTeam();
    await issue({ ip_whitelist: '203.0.113.0/24' });
    expect((await issue({ grace_seconds: 3600 })).ip_whitelist).toBe('203.0.113.0/24');
    expect((await issue({ ip_whitelist: '198.51.100.7' })).ip_whitelist).toBe('198.51.100.7');
    expect((await issue()).ip_whitelist).toBe('198.51.100.7');
    expect((await issue({ ip_whitelist: '' })).ip_whitelist).toBe('');
    expect((await issue()).ip_whitelist).toBe('');
  });

  it('are those of the newest live key, and of no key that has ended', async () => {
    await freshTeam();
    await issue({ ip_whitelist: '203.0.113.0/24' });
    await issue({ ip_whitelist: '198.51.100.7', grace_seconds: 3600 });
    expect((await issue()).ip_whitelist).toBe('198.51.100.7');
    await fixture.call(owner, members.revokeKey, { team_id, user_id });
    expect((await issue()).ip_whitelist).toBe('');
  });

  it('are set by its holder where there are none, and then changed by a manager alone', async () => {
    await freshTeam();
    const bound = await issue({ ip_whitelist: '203.0.113.0/24, ::1', grace_seconds: 3600 }, first);
    for (const ip_whitelist of ['', '0.0.0.0/0', '203.0.113.0/24']) {
      const refused = await errorOf(issue({ ip_whitelist }, bound.api_key ?? ''));
      expect([refused.code, refused.message]).toEqual([
        'forbidden',
        expect.stringMatching(/only a team_owner or a team_admin/),
      ]);
    }
    const kept = await issue({ ip_whitelist: '203.0.113.0/24,::1' }, bound.api_key ?? '');
    expect((await issue({}, kept.api_key ?? '')).ip_whitelist).toBe('203.0.113.0/24,::1');
    expect((await issue({ ip_whitelist: '' }, owner)).ip_whitelist).toBe('');
  });
});

describe('the expiry that a manager set on a key', () => {
  const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
  const inADay = () => new Date(Date.now() + dayMs).toISOString();

  it('holds for the keys that its holder issues in its place, one after the other', async () => {
    await freshTeam();
    const bound = await issue({ expiry_date: inAnHour() });
    const second = await issue({}, bound.api_key ?? '');
    expect(second.expiry_date).toBe(bound.expiry_date);
    const refused = await errorOf(issue({ expiry_date: inADay() }, second.api_key ?? ''));
    expect([refused.code, refused.message]).toEqual([
      'forbidden',
      expect.stringContaining(bound.expiry_date ?? 'none'),
    ]);
    const same = await issue({ expiry_date: bound.expiry_date ?? '' }, second.api_key ?? '');
    expect(same.expiry_date).toBe(bound.expiry_date);
    const shorter = await issue({ expiry_date: new Date(Date.now() + 60_000).toISOString() }, same.api_key ?? '');
    expect((await issue({}, shorter.api_key ?? '')).expiry_date).toBe(bound.expiry_date);
  });

  it('is lifted by a manager, and binds no manager', async () => {
    await freshTeam();
    const bound = await issue({ expiry_date: inAnHour() });
    const lifted = await issue({ grace_seconds: 60 });
    expect(Date.parse(lifted.expiry_date ?? '')).toBeGreaterThan(Date.parse(bound.expiry_date ?? ''));
    const day = inADay();
    expect((await issue({ expiry_date: day }, lifted.api_key ?? '')).expiry_date).toBe(day);
    await fixture.call(owner, members.changeRole, { team_id, user_id, role: 'team_admin' });
    const admins = await issue({ expiry_date: inAnHour() });
    expect((await issue({ expiry_date: day }, admins.api_key ?? '')).expiry_date).toBe(day);
  });

  it('outlives the key, as its addresses do: its holder gets around neither by ending it first', async () => {
    await freshTeam();
    const bound = await issue({ expiry_date: inAnHour(), ip_whitelist: '203.0.113.0/24' });
    const whole = await fixture.wholeKeyOf(user_id);
    await fixture.call(whole, members.revokeKey, { team_id, user_id });
    expect((await errorOf(issue({ ip_whitelist: '' }, whole))).code).toBe('forbidden');
    expect((await errorOf(issue({ expiry_date: inADay() }, whole))).code).toBe('forbidden');
    expect(await issue({}, whole)).toMatchObject({ expiry_date: bound.expiry_date, ip_whitelist: '203.0.113.0/24' });
    await fixture.query(
      `UPDATE api_key SET expiry_date = now() - interval '1 millisecond', bound_until = now() - interval '1 millisecond' WHERE team_id = $1 AND user_id = $2`,
      [team_id, user_id],
    );
    expect((await errorOf(issue({}, whole))).message).toMatch(/expiry_date.*only a team_owner or a team_admin/);
    expect((await issue()).ip_whitelist).toBe('');
  });

  it('is none where the holder chose it', async () => {
    await freshTeam();
    const chosen = await issue({ expiry_date: inAnHour() }, first);
    const day = inADay();
    expect((await issue({ expiry_date: day }, chosen.api_key ?? '')).expiry_date).toBe(day);
  });
});

describe('a key that was replaced', () => {
  it('works for its grace and issues no key, neither for its holder nor for others', async () => {
    await freshTeam();
    const second = await issue({ grace_seconds: 3600 });
    const refused = await errorOf(issue({}, first));
    expect([refused.code, refused.message]).toEqual(['forbidden', expect.stringContaining('was replaced')]);
    expect([await opens(first), await opens(second.api_key ?? '')]).toEqual([true, true]);
    const ownerId = (await fixture.call(owner, users.profile, {})).id;
    await fixture.call(owner, members.issueKey, { team_id, user_id: ownerId, grace_seconds: 3600 });
    expect((await errorOf(issue({}, owner))).code).toBe('forbidden');
  });

  it('gets what it was answered before, when it asks again with the same idempotency key', async () => {
    await freshTeam();
    const second = await issue({ grace_seconds: 3600 }, first, 'rotate-1');
    expect(await issue({ grace_seconds: 3600 }, first, 'rotate-1')).toEqual({
      ...second,
      api_key: maskApiKey(second.api_key ?? ''),
    });
  });
});

describe('bad terms', () => {
  it.each(['2020-01-01T00:00:00Z', new Date(Date.now() + 366 * dayMs).toISOString()])(
    'are told before whether the caller may, or the member is there: %s',
    async (expiry_date) => {
      await freshTeam();
      const stranger = (await fixture.createTeam('member')).keys[0] ?? '';
      const attempts = [
        issue({ expiry_date }, stranger),
        fixture.call(first, members.issueKey, { team_id, user_id: unknownId, expiry_date }),
        fixture.call(owner, members.issueKey, { team_id, user_id: unknownId, expiry_date }),
        fixture.call(first, users.issueKey, { expiry_date }),
      ];
      for (const { code } of await Promise.all(attempts.map(errorOf))) expect(code).toBe('invalid_input');
    },
  );

  it('are none of an answer that was kept, though the expiry_date has passed since', async () => {
    await freshTeam();
    const expiry_date = new Date(Date.now() + 2_000 * timeoutFactor).toISOString();
    const issued = await issue({ expiry_date }, owner, 'short-lived');
    while (Date.parse(expiry_date) > Date.now()) await delay(20);
    expect(await issue({ expiry_date }, owner, 'short-lived')).toEqual({
      ...issued,
      api_key: maskApiKey(issued.api_key ?? ''),
    });
  });
});

describe('revoking a key', () => {
  it('ends every key of the member, those in grace too, and can be repeated', async () => {
    await freshTeam();
    const second = await issue({ grace_seconds: 3600 });
    for (let time = 0; time < 2; time += 1)
      expect(await fixture.call(owner, members.revokeKey, { team_id, user_id })).toEqual({});
    expect([await opens(first), await opens(second.api_key ?? '')]).toEqual([false, false]);
    expect(await shown()).toMatchObject({ api_key: null, api_token: false, expiry_date: null, ip_whitelist: '' });
  });

  it('is in the hands of the member as well', async () => {
    await freshTeam();
    await fixture.call(first, members.revokeKey, { team_id, user_id });
    expect(await opens(first)).toBe(false);
  });
});

describe('a key that has expired', () => {
  it('is no live key, and the gateway is told when it expired', async () => {
    await freshTeam();
    await fixture.query(
      `UPDATE api_key SET expiry_date = now() - interval '1 second' WHERE team_id = $1 AND user_id = $2`,
      [team_id, user_id],
    );
    expect(await shown()).toMatchObject({ api_key: null, api_token: false, expiry_date: null });
    expect(Date.parse((await fixture.verify(first)).expiry_date ?? '')).toBeLessThan(Date.now());
  });
});

describe('a person with keys to several teams', () => {
  it('is shown in each team with the key to that team', async () => {
    const [first, second] = [await fixture.createTeam('team_owner'), await fixture.createTeam('team_owner')];
    const email = 'everywhere@example.org';
    const join = async ({ team, keys }: typeof first) =>
      fixture.call(keys[0] ?? '', members.add, { team_id: team.id, email, name: 'x', role: 'member' });
    const [one, other] = [await join(first), await join(second)];
    const shownIn = async ({ team, keys }: typeof first) =>
      (await fixture.call(keys[0] ?? '', members.list, { team_id: team.id })).data.find(
        (member) => member.email === email,
      )?.api_key;
    expect(await shownIn(first)).toBe(maskApiKey(one.api_key ?? ''));
    expect(await shownIn(second)).toBe(maskApiKey(other.api_key ?? ''));
    await fixture.call(second.keys[0] ?? '', members.revokeKey, { team_id: second.team.id, user_id: other.user_id });
    expect(await shownIn(first)).toBe(maskApiKey(one.api_key ?? ''));
    expect(await shownIn(second)).toBeNull();
    const { teams: opened } = await fixture.verify(one.api_key ?? '');
    expect(opened.map(({ team_id }) => team_id)).toEqual([first.team.id]);
  });
});
