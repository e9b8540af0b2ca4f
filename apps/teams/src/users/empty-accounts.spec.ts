import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { links, members, teams } from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { allStatementsDuring, inTransactionBeside, mostRowsRead, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { gateway, logIn, password, tokenIn } from '../sessions/session-fixture.js';
import { DeletedTeams } from '../teams/deleted-teams.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { EmptyAccounts } from './empty-accounts.js';
import { UserRegistry } from './user-registry.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const person = () => ({ email: `${randomUUID()}@example.com`, name: 'Ada', role: 'member' as const });
const isThere = async (userId: string): Promise<boolean> =>
  (await fixture.query('SELECT FROM "user" WHERE id = $1', [userId])).length > 0;
const removeSome = () => fixture.get(EmptyAccounts).removeSome();

/** Lets an hour pass for the accounts that are to be checked, and checks them. */
async function anHourLater(): Promise<void> {
  await fixture.query(`UPDATE account_check SET due_at = due_at - interval '1 hour'`);
  while (await removeSome());
}

/** A team of one owner, and somebody who is invited to it. */
async function invite(asked = person()) {
  const { team, keys } = await fixture.createTeam('team_owner');
  const [owner = ''] = keys;
  const { user_id, invitation } = await fixture.call(owner, members.add, { team_id: team.id, ...asked });
  return {
    ...asked,
    userId: user_id,
    teamId: team.id,
    token: tokenIn(invitation?.url ?? ''),
    remove: () => fixture.call(owner, members.remove, { team_id: team.id, user_id }),
    again: () => fixture.call(owner, members.add, { team_id: team.id, ...asked }),
  };
}

async function deleteTeam(teamId: string): Promise<void> {
  await fixture.call(fixture.admin, teams.delete, { team_id: teamId });
  await fixture.query(`UPDATE team SET deleted_at = deleted_at - interval '2 hours' WHERE id = $1`, [teamId]);
  const deletedTeams = new DeletedTeams(fixture.get(Statements));
  while (await deletedTeams.removeSome());
  // They are due at once, by a column of milliseconds: half of one too late, as it may be rounded.
  await fixture.query(`UPDATE account_check SET due_at = due_at - interval '1 millisecond'`);
}

describe('of those who were invited to a team that is deleted', () => {
  it('the accounts go that have nothing, with their links; those that have a password or another team stay', async () => {
    const [empty, full, elsewhere] = [await invite(), await invite(), await invite()];
    await fixture.ask(links.use, { token: full.token, password }, gateway);
    const other = await invite({ email: elsewhere.email, name: 'Ada', role: 'member' });
    for (const { teamId } of [empty, full, elsewhere]) await deleteTeam(teamId);
    while (await removeSome());
    expect([await isThere(empty.userId), await isThere(full.userId), await isThere(other.userId)]).toEqual([
      false,
      true,
      true,
    ]);
    expect(await fixture.query('SELECT FROM one_time_link WHERE user_id = $1', [empty.userId])).toEqual([]);
    await logIn(fixture, full);
    await deleteTeam(other.teamId);
    await removeSome();
    expect(await isThere(other.userId)).toBe(false);
    expect(await fixture.query('SELECT FROM account_check WHERE due_at <= now()')).toEqual([]);
  });

  it('a thousand accounts go at a time, and nothing is read of the others', async () => {
    const { team } = await fixture.createTeam();
    const people = Array.from({ length: 1_100 }, person);
    await fixture.get(Transactions).run(async (manager) => {
      const ids = await fixture.get(UserRegistry).findOrCreate(manager, people);
      await manager.query(
        `INSERT INTO membership (id, team_id, user_id, role) SELECT gen_random_uuid(), $1, id, 'member' FROM unnest($2::uuid[]) id`,
        [team.id, ids],
      );
    });
    const emails = people.map(({ email }) => email);
    const left = async () => (await fixture.query('SELECT FROM "user" WHERE email = ANY ($1)', [emails])).length;
    await deleteTeam(team.id);
    expect([await removeSome(), (await left()) > 0, await removeSome(), await left()]).toEqual([true, true, false, 0]);
    await fixture.query('ANALYZE');
    const [look] = (await allStatementsDuring(removeSome)).filter(({ text }) => text.includes('due_at <='));
    expect(look && (await mostRowsRead(fixture, look))).toBe(0);
  });
});

describe('an account that has nothing and no team', () => {
  it('goes an hour after its last membership was removed or declined, and not before', async () => {
    const { userId, remove } = await invite();
    await remove();
    await removeSome();
    expect(await isThere(userId)).toBe(true);
    await anHourLater();
    expect(await isThere(userId)).toBe(false);
  });

  it('gets the same id when its address is invited again: an inviter does not learn whether there was more on it', async () => {
    const { userId, remove, again } = await invite();
    await remove();
    await anHourLater();
    expect([await isThere(userId), (await again()).user_id]).toEqual([false, userId]);
  });

  it('stays where the next invitation would give it another id: of an earlier release, or with another address since', async () => {
    const { userId, teamId, email, remove, again } = await invite();
    await fixture.query('UPDATE "user" SET email = $2 WHERE id = $1', [userId, `moved-${email}`]);
    await remove();
    const next = await again();
    expect(next.user_id).not.toBe(userId);
    await fixture.call(fixture.admin, members.remove, { team_id: teamId, user_id: next.user_id });
    await anHourLater();
    expect([await isThere(userId), await isThere(next.user_id)]).toEqual([true, true]);
    expect(await fixture.query('SELECT FROM account_check')).toEqual([]);
  });

  it('stays as long as a link is good with which its owner sets a password', async () => {
    const { userId, email, remove } = await invite();
    const { url } = await fixture.call(fixture.admin, links.create, { email });
    await remove();
    await anHourLater();
    await fixture.ask(links.check, { token: tokenIn(url) }, gateway);
    await fixture.query(`UPDATE one_time_link SET expires_at = now() WHERE user_id = $1`, [userId]);
    await anHourLater();
    expect(await isThere(userId)).toBe(false);
  });

  it('stays with anything that somebody has put on it', async () => {
    const belongings = {
      'a verified address': 'UPDATE "user" SET verified_at = now() WHERE id = $1',
      'the power of the operator': 'UPDATE "user" SET platform_admin = true WHERE id = $1',
      'a password': `INSERT INTO password (user_id, hash) VALUES ($1, 'x')`,
      'an authenticator': `INSERT INTO second_factor (user_id, sealed, is_confirmed) VALUES ($1, 'x', true)`,
      'an authenticator that is not confirmed': `INSERT INTO second_factor (user_id, sealed) VALUES ($1, 'x')`,
      'a recovery code': `INSERT INTO recovery_code (user_id, digest) VALUES ($1, 'x')`,
      'a passkey': `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
        VALUES (gen_random_uuid(), $1, 'x', 'x', 0, '{}', 'x')`,
      'a passkey in the making': `INSERT INTO passkey_challenge (id, user_id, challenge, expires_at) VALUES (gen_random_uuid(), $1, 'x', now())`,
      'an identity': `INSERT INTO user_identity (issuer, subject, user_id) VALUES ('x', 'y', $1)`,
      'a session': `INSERT INTO session (id, user_id, address, device, idle_until, expires_at) VALUES (gen_random_uuid(), $1, '', '', now(), now())`,
      'a known network': `INSERT INTO log_in_network (user_id, network) VALUES ($1, 'x')`,
      'a key': `INSERT INTO api_key (id, user_id, digest, mask) VALUES (gen_random_uuid(), $1, 'x', '')`,
    };
    for (const [what, statement] of Object.entries(belongings)) {
      const { userId, remove } = await invite();
      await remove();
      await fixture.query(statement, [userId]);
      await anHourLater();
      expect([what, await isThere(userId)]).toEqual([what, true]);
      await fixture.query('UPDATE "user" SET platform_admin = false WHERE id = $1', [userId]);
    }
  });
});

describe('while an account is being removed', () => {
  /** Does what needs the account while its removal is under way, and commits that once the other waits for it. */
  async function duringRemoval<T>(userId: string, work: () => Promise<T>): Promise<T> {
    const working = await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query('DELETE FROM one_time_link WHERE user_id = $1', [userId]);
      await other.query('DELETE FROM "user" WHERE id = $1', [userId]);
      const begun = work();
      await untilLockWaits(fixture, { unless: begun });
      await other.commitTransaction();
      return [begun] as const;
    });
    return working[0];
  }

  it('an invitation to its address waits, and makes it again', async () => {
    const { userId, remove, again } = await invite();
    await remove();
    expect(await duringRemoval(userId, again)).toMatchObject({ user_id: userId, status: 'invited' });
    await anHourLater();
    expect(await isThere(userId)).toBe(true);
  });

  it('the operator, who makes a link for it, is answered that there is no such user', async () => {
    const { userId, email, remove } = await invite();
    await remove();
    const refused = await duringRemoval(userId, () => errorOf(fixture.call(fixture.admin, links.create, { email })));
    expect(refused.code).toBe('not_found');
  });

  it('an invitation that is under way keeps it: the removal waits for nobody, and looks again', async () => {
    const { userId, remove, again } = await invite();
    await remove();
    await inTransactionBeside(fixture.get(DataSource), async (inviting) => {
      await inviting.query('SELECT FROM "user" WHERE id = $1 FOR NO KEY UPDATE', [userId]);
      await anHourLater();
      expect(await isThere(userId)).toBe(true);
    });
    await again();
    await anHourLater();
    expect(await isThere(userId)).toBe(true);
    await remove();
    await anHourLater();
    expect(await isThere(userId)).toBe(false);
  });

  it('a membership that is removed while the account is checked has it checked again', async () => {
    const { userId, remove, again } = await invite();
    await remove();
    await again();
    const removing = await inTransactionBeside(fixture.get(DataSource), async (checking) => {
      await checking.query('SELECT FROM account_check WHERE user_id = $1 FOR UPDATE', [userId]);
      const begun = remove();
      await untilLockWaits(fixture, { unless: begun });
      await checking.query('DELETE FROM account_check WHERE user_id = $1', [userId]);
      await checking.commitTransaction();
      return [begun] as const;
    });
    await removing[0];
    await anHourLater();
    expect(await isThere(userId)).toBe(false);
  });
});
