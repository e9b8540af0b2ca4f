import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { invitations, links, members, type Team } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { contextOf, gateway, logIn, password, somebody, tokenIn } from '../sessions/session-fixture.js';
import { TeamsFixture } from '../teams-fixture.js';
import { inLine } from '../teams/held-teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  fixture.asManyReplicas();
});
afterAll(() => fixture.stop());

/** Who has an account is invited: by which calls that ends, and what is left. */
async function invited() {
  const { team, keys } = await fixture.createTeam('team_owner');
  const [owner = ''] = keys;
  const person = await somebody(fixture);
  const asked = { team_id: team.id, email: person.email, name: 'Ada', role: 'member' } as const;
  const { invitation } = await fixture.call(owner, members.add, asked);
  const { data } = await fixture.call(owner, invitations.list, { team_id: team.id });
  const found = data.find(({ email }) => email === person.email);
  const own = await contextOf(fixture, await logIn(fixture, person));
  return {
    team,
    userId: person.userId,
    revoke: () => fixture.call(owner, invitations.revoke, { team_id: team.id, invitation_id: found?.id ?? '' }),
    useLink: () => fixture.ask(links.use, { token: tokenIn(invitation?.url ?? ''), password }, gateway),
    accept: () => fixture.ask(invitations.accept, { team_id: team.id }, own),
    isMember: () => isMember(team, person.userId),
  };
}

async function isMember({ id }: Team, userId: string): Promise<boolean> {
  return (await fixture.query('SELECT FROM membership WHERE team_id = $1 AND user_id = $2', [id, userId])).length > 0;
}

const codesOf = (outcomes: PromiseSettledResult<unknown>[]): string[] =>
  outcomes.map((one) =>
    one.status === 'fulfilled' ? 'done' : isAppError(one.reason) ? one.reason.code : String(one.reason),
  );

it('an invitation that is accepted with a password waits for whoever sets one, and has them wait for nothing', async () => {
  const { userId, useLink } = await invited();
  await inTransactionBeside(fixture.get(DataSource), async (setting) => {
    await setting.query('SELECT FROM "user" WHERE id = $1 FOR NO KEY UPDATE', [userId]);
    let isAccepted = false;
    const accepting = useLink().then(() => (isAccepted = true));
    await untilLockWaits(fixture, { unless: accepting });
    const free = (await setting.query('SELECT FROM password WHERE user_id = $1 FOR NO KEY UPDATE SKIP LOCKED', [
      userId,
    ])) as object[];
    expect([isAccepted, free.length]).toEqual([false, 1]);
    await setting.commitTransaction();
    expect(await accepting).toBe(true);
  });
});

it('of invitations of two teams that are used at once for a new address one makes the account, and the other is refused', async () => {
  const email = `${randomUUID()}@example.com`;
  const invite = async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const added = { team_id: team.id, email, name: 'Ada', role: 'member' } as const;
    return fixture.call(keys[0] ?? '', members.add, added);
  };
  const [one, other] = [await invite(), await invite()];
  expect(one.user_id).toBe(other.user_id);
  await inTransactionBeside(fixture.get(DataSource), async (setting) => {
    await setting.query('SELECT FROM "user" WHERE id = $1 FOR NO KEY UPDATE', [one.user_id]);
    const uses = Promise.allSettled(
      [one, other].map(({ invitation }, at) =>
        fixture.ask(links.use, { token: tokenIn(invitation?.url ?? ''), password: `${password} ${at}` }, gateway),
      ),
    );
    await untilLockWaits(fixture, { count: 2, unless: uses });
    await setting.commitTransaction();
    expect(codesOf(await uses).toSorted()).toEqual(['done', 'forbidden']);
  });
});

describe('an invitation that is revoked while it is accepted', () => {
  it.each(['accept', 'useLink'] as const)('is accepted where %s comes first: there is none to revoke', async (way) => {
    const { team, revoke, isMember: isIn, ...ways } = await invited();
    expect(codesOf(await inLine(fixture, team.id, [ways[way], revoke]))).toEqual(['done', 'not_found']);
    expect(await isIn()).toBe(true);
  });

  it.each([
    ['accept', 'not_found'],
    ['useLink', 'unauthenticated'],
  ] as const)('is gone where it is revoked first: %s is refused as %s', async (way, code) => {
    const { team, revoke, isMember: isIn, ...ways } = await invited();
    expect(codesOf(await inLine(fixture, team.id, [revoke, ways[way]]))).toEqual(['done', code]);
    expect(await isIn()).toBe(false);
  });
});
