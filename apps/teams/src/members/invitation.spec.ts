import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { members, teams, users, workspaces, type TeamMember } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { TeamsFixture, unknownId, type MadeTeam } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

let own: MadeTeam;
let owner: string;
/** Of a user with a name, a zone, an age and GPUs, who never heard of this team. */
let known: string;
/** Of nobody. */
let unknown: string;
let beganAt: Date;
beforeEach(async () => {
  own = await fixture.createTeam('team_owner');
  owner = own.keys[0] ?? '';
  const elsewhere = await fixture.createTeam('viewer');
  [known = ''] = elsewhere.emails;
  unknown = `viewer-${randomUUID()}@example.com`;
  const [userId = ''] = elsewhere.userIds;
  const whole = await fixture.wholeKeyOf(userId);
  await fixture.call(whole, users.updateProfile, { name: 'Secret Name', timezone: 'Asia/Tokyo' });
  await fixture.query(`UPDATE "user" SET created_at = now() - interval '3 years' WHERE id = $1`, [userId]);
  await fixture.query(`INSERT INTO team_capacity VALUES ($1, '{1,2,3}', true, 1)`, [elsewhere.team.id]);
  beganAt = new Date(Date.now() - 1_000);
});

const add = (email: string, key = owner) =>
  fixture.call(key, members.add, { team_id: own.team.id, email, name: 'As sent', role: 'team_admin' });

/**
 * What a caller sees, as text: addresses, ids, keys and instants are what they sent or what differs between any two
 * calls.
 */
function seen(answer: unknown): string {
  const ids = new Map<string, number>();
  return JSON.stringify(answer)
    .replaceAll(known, '<address>')
    .replaceAll(unknown, '<address>')
    .replaceAll(
      /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
      (id) => `<id ${ids.get(id) ?? ids.set(id, ids.size).size}>`,
    )
    .replaceAll(/atl_[^"]+/g, '<key>')
    .replaceAll(/#[0-9a-f]{32}[^"]+/g, '#<token>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (instant) => (new Date(instant) >= beganAt ? '<recent>' : instant));
}

const outcome = (call: Promise<unknown>): Promise<unknown> =>
  call.catch((error: unknown) => {
    if (isAppError(error)) return error.toWire();
    throw error;
  });

/** Everything that an owner of the team, and who holds the key of the one they add, can ask and be told. */
async function everythingSeenOf(email: string): Promise<string[]> {
  const { id: team_id } = own.team;
  const added = await add(email);
  const { user_id, api_key } = added;
  const key = api_key ?? '';
  const answers: unknown[] = [added];
  const ask = async (call: Promise<unknown>) => answers.push(await outcome(call));
  await ask(add(email));
  await ask(fixture.call(owner, members.list, { team_id }));
  await ask(fixture.call(owner, teams.get, { team_id }));
  await ask(fixture.call(owner, teams.list, {}));
  await ask(fixture.verify(key));
  await ask(fixture.call(key, users.profile, {}));
  await ask(fixture.call(key, teams.list, {}));
  await ask(fixture.call(key, users.updateProfile, { name: 'x' }));
  await ask(fixture.call(key, users.issueKey, {}));
  await ask(fixture.call(key, teams.create, { name: 'x' }));
  await ask(fixture.call(owner, members.changeRole, { team_id, user_id, role: 'viewer' }));
  await ask(fixture.call(owner, members.issueKey, { team_id, user_id }));
  await ask(fixture.call(owner, members.revokeKey, { team_id, user_id }));
  await ask(fixture.call(owner, members.remove, { team_id, user_id }));
  await ask(fixture.call(owner, members.remove, { team_id, user_id }));
  return answers.map(seen);
}

describe('a person who is added by their e-mail address', () => {
  it('is seen as sent, to the byte, whether or not the platform knew the address', async () => {
    expect(await everythingSeenOf(known)).toEqual(await everythingSeenOf(unknown));
  });

  it('is seen as sent among the members of a new team, to the byte', async () => {
    const whole = await fixture.wholeKeyOf(own.userIds[0] ?? '');
    const create = async (email: string): Promise<unknown[]> => {
      const people = [{ email, name: 'As sent', role: 'team_owner' as const }];
      const made = await fixture.call(whole, teams.create, { name: 'New', members: people });
      const profile = await fixture.call(made.members[1]?.api_key ?? '', users.profile, {});
      return [made, profile].map(seen);
    };
    expect(await create(known)).toEqual(await create(unknown));
  });

  it('is invited, with the name that was sent, zone UTC and the age of the membership, until they accept', async () => {
    const { user_id, api_key, ...shown } = await add(known);
    expect(shown).toMatchObject({ email: known, name: 'As sent', status: 'invited' });
    const key = api_key ?? '';
    const [membership] = await fixture.query<{ created_at: Date }>(
      'SELECT created_at FROM membership WHERE team_id = $1 AND user_id = $2',
      [own.team.id, user_id],
    );
    expect(await fixture.call(key, users.profile, {})).toEqual({
      id: user_id,
      email: known,
      name: 'As sent',
      timezone: 'UTC',
      role: 'user',
      teams: [{ id: own.team.id, name: 'Research', role: 'team_admin', status: 'invited' }],
      card_count: 0,
      second_factor: null,
      created_at: membership?.created_at.toISOString(),
    });
    expect(await fixture.verify(key)).toMatchObject({ timezone: 'UTC' });
    await fixture.query(`UPDATE membership SET status = 'active' WHERE team_id = $1 AND user_id = $2`, [
      own.team.id,
      user_id,
    ]);
    const memberOf = async (): Promise<TeamMember | undefined> =>
      (await fixture.call(owner, teams.get, { team_id: own.team.id })).members.find(
        (member) => member.user_id === user_id,
      );
    expect(await memberOf()).toMatchObject({ name: 'Secret Name', status: 'active' });
    expect(await fixture.call(key, users.profile, {})).toMatchObject({ name: 'Secret Name', timezone: 'Asia/Tokyo' });
    expect(await fixture.verify(key)).toMatchObject({ timezone: 'Asia/Tokyo' });
  });

  it('takes the same statements, known or not', async () => {
    const ofAdding = async (email: string) => fixture.statementsOf(() => add(email));
    const statements = await ofAdding(known);
    // A row of the user is written in either case.
    expect(statements.filter((text) => text.includes('"user"') && text.includes('DO UPDATE'))).toHaveLength(1);
    expect(await ofAdding(unknown)).toEqual(statements);
    const whole = await fixture.wholeKeyOf(own.userIds[0] ?? '');
    const ofCreating = (email: string) =>
      fixture.statementsOf(() =>
        fixture.call(whole, teams.create, { name: 'x', members: [{ email, name: 'x', role: 'viewer' }] }),
      );
    expect(await ofCreating(known)).toEqual(await ofCreating(`${randomUUID()}@example.com`));
  });

  it('gets an id that tells no age', async () => {
    expect((await add(unknown)).user_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  });
});

describe('the caller', () => {
  it('is no guest in a team of their own making: active, with their own name', async () => {
    const whole = await fixture.wholeKeyOf(own.userIds[0] ?? '');
    await fixture.call(whole, users.updateProfile, { name: 'Ada', timezone: 'Europe/Berlin' });
    const made = await fixture.call(whole, teams.create, { name: 'Mine' });
    expect(made.members).toMatchObject([{ name: 'Ada', status: 'active' }]);
    expect(await fixture.call(made.members[0]?.api_key ?? '', users.profile, {})).toMatchObject({
      name: 'Ada',
      timezone: 'Europe/Berlin',
    });
  });
});

describe('a workspace of another team', () => {
  it('is refused by the same statements and words as one that does not exist', async () => {
    const foreign = (await fixture.createTeam()).team.workspaces[0]?.id ?? '';
    const calls = (workspace_id: string) => [
      () => fixture.call(owner, workspaces.rename, { workspace_id, name: 'x' }),
      () => fixture.call(owner, workspaces.delete, { workspace_id }),
    ];
    for (const [at, ofForeign] of calls(foreign).entries()) {
      const ofUnknown = calls(unknownId)[at]!;
      expect(await outcome(ofForeign())).toEqual(await outcome(ofUnknown()));
      expect(await fixture.statementsOf(ofForeign)).toEqual(await fixture.statementsOf(ofUnknown));
    }
  });
});
