import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  deletionCalledOff,
  teamChanged,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamChanged,
} from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import { aTeam, contextOf, memberOf, operator, untilLockWaits } from '@atoll/testing';
import type { EntityManager } from 'typeorm';
import { DirectoryFixture, errorOf } from './directory-fixture.js';
import { TeamGate } from './team-gate.js';

let fixture: DirectoryFixture;
let gate: TeamGate;
let transactions: Transactions;
let team: TeamChanged;
let [first, second] = ['', ''];
beforeAll(async () => {
  fixture = await DirectoryFixture.start();
  gate = fixture.app.get(TeamGate, { strict: false });
  transactions = fixture.app.get(Transactions, { strict: false });
});
beforeEach(async () => {
  [first, second] = [newId(), newId()];
  team = { ...aTeam(), workspaces: [first, second].map((id) => ({ id, name: id })) };
  await fixture.tell(teamChanged, team);
});
afterAll(() => fixture.stop());

const caller = (user: Parameters<typeof contextOf>[0]) => contextOf(user).caller;
const member = () => caller(memberOf(team.team_id, 'member'));
const codeOf = async (call: Promise<unknown>) => (await errorOf(call)).code;
const grow = (by = member(), workspace?: string) => gate.requireGrowth(by, team.team_id, 'team', workspace);
const change = (changes: Partial<TeamChanged>) => fixture.tell(teamChanged, { ...team, revision: 2, ...changes });
const take = (workspaceId = first, teamId = team.team_id, by = member()) =>
  transactions.run((manager) => gate.holdOpen(manager, by, { teamId, workspaceId }));
const hold = (workspaceId = first) => fixture.query('INSERT INTO thing VALUES ($1, $2)', [team.team_id, workspaceId]);
const requested = (more: { force?: boolean } = {}) => {
  const attempt_id = newId();
  return fixture
    .tell(teamDeletionRequested, { team_id: team.team_id, attempt_id, revision: 1, ...more })
    .then(() => attempt_id);
};
/** What was answered to this attempt. */
const answerTo = async (attempt_id: string) => {
  const rows = await fixture.query<{ payload: object }>(
    `SELECT payload FROM outbox WHERE payload->>'attempt_id' = $1 UNION ALL SELECT payload FROM outbox_published WHERE payload->>'attempt_id' = $1`,
    [attempt_id],
  );
  return rows.map(({ payload }) => payload);
};
/** What is answered where a workspace of the team is to be deleted. */
const askFor = async (workspace_id: string, attempt_id = newId()) => {
  await fixture.tell(workspaceDeletionRequested, { team_id: team.team_id, workspace_id, attempt_id, revision: 1 });
  return answerTo(attempt_id);
};
type Part = (manager: EntityManager) => Promise<unknown>;
/** Begins a transaction with its first part. `end` does the rest, and commits. */
async function begin(start: Part, rest: Part = () => Promise.resolve()): Promise<{ end: () => Promise<void> }> {
  const [begun, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const running = transactions.run(async (manager) => {
    await start(manager);
    begun.resolve();
    await ends.promise;
    await rest(manager);
  });
  await Promise.race([begun.promise, running]);
  const end = () => {
    ends.resolve();
    return running;
  };
  return { end };
}
const beginToTake = () =>
  begin(
    (manager) => gate.holdOpen(manager, member(), { teamId: team.team_id, workspaceId: first }),
    (manager) => manager.query('INSERT INTO thing VALUES ($1, $2)', [team.team_id, first]),
  );
const answered = (holds: string | null, remaining: object[]) => [
  expect.objectContaining({ team_id: team.team_id, holder: 'reader', holds, remaining }),
];

describe('a team may have more', () => {
  it('in its default workspace, or in one of its own that is named', async () => {
    expect(await grow()).toBe(first);
    expect(await grow(member(), second)).toBe(second);
    expect(await codeOf(grow(member(), newId()))).toBe('not_found');
  });

  it('by who may use resources in it; for others it does not exist, or it is forbidden', async () => {
    expect(await codeOf(grow(caller(memberOf(newId(), 'member'))))).toBe('not_found');
    expect(await codeOf(grow(caller(memberOf(team.team_id, 'billing_viewer'))))).toBe('forbidden');
    expect(await grow(caller(operator))).toBe(first);
  });

  it('not while it is suspended, but for the operator', async () => {
    await change({ is_suspended: true });
    expect(await codeOf(grow())).toBe('team_suspended');
    expect((await gate.growthRefusal(member(), team.team_id, 'team'))?.code).toBe('team_suspended');
    expect(await grow(caller(operator))).toBe(first);
    expect(await gate.growthRefusal(caller(operator), team.team_id, 'team')).toBeUndefined();
  });

  it('not within a transaction either that begins after a suspension is known here, which waits for those that have begun', async () => {
    const taking = await beginToTake();
    const suspending = change({ is_suspended: true });
    await untilLockWaits(fixture, { text: 'advisory' });
    const late = codeOf(take());
    await Promise.all([taking.end(), suspending]);
    expect([await late, await codeOf(take(second))]).toEqual(['team_suspended', 'team_suspended']);
    await take(first, team.team_id, caller(operator));
    await change({ revision: 3 });
    await take();
  });

  it('not while it is being deleted, nor in a workspace that is gone', async () => {
    await change({ workspaces: team.workspaces.slice(0, 1) });
    expect(await codeOf(grow(member(), second))).toBe('not_found');
    await fixture.tell(teamChanged, { ...team, revision: 3, status: 'deleting' });
    expect(await codeOf(grow())).toBe('conflict');
    await fixture.tell(teamChanged, { ...team, revision: 4, status: 'deleting', is_suspended: true });
    expect(await codeOf(grow())).toBe('conflict');
    await fixture.tell(teamChanged, { ...team, revision: 5, status: 'deleted' });
    expect(await codeOf(grow())).toBe('not_found');
  });
});

describe('a service that is asked what a team holds', () => {
  it('names it by kind, and goes on giving', async () => {
    await hold();
    await hold(second);
    expect(await answerTo(await requested())).toEqual(answered('2 things', [{ kind: 'thing', count: 2 }]));
    await take();
  });

  it('says once that it is nothing, and from then on gives nothing, until that is called off', async () => {
    const attempt = await requested();
    expect(await answerTo(attempt)).toEqual(answered(null, []));
    expect(await codeOf(take())).toBe('conflict');
    expect(await codeOf(take(second))).toBe('conflict');
    await take(newId(), newId());
    await fixture.tell(deletionCalledOff, { team_id: team.team_id, attempt_id: newId(), revision: 1 });
    expect(await codeOf(take())).toBe('conflict');
    await fixture.tell(deletionCalledOff, { team_id: team.team_id, attempt_id: attempt, revision: 1 });
    await take();
  });

  it('opens again by itself where nobody concludes the deletion', async () => {
    await requested();
    await fixture.query(
      `UPDATE team_closing SET until = clock_timestamp() - interval '1 millisecond' WHERE team_id = $1`,
      [team.team_id],
    );
    await take();
    await askFor(first);
    expect(await codeOf(take())).toBe('conflict');
    await fixture.query(
      `UPDATE workspace_closing SET until = clock_timestamp() - interval '1 millisecond' WHERE workspace_id = $1`,
      [first],
    );
    await take();
  });

  it('stays closed by the last of two attempts where the first is called off late, and opens where the last is', async () => {
    const callOff = (attempt_id: string) =>
      fixture.tell(deletionCalledOff, { team_id: team.team_id, attempt_id, revision: 1 });
    const attempts = [await requested(), await requested()] as const;
    await callOff(attempts[0]);
    expect(await codeOf(take())).toBe('conflict');
    await callOff(attempts[1]);
    await take();
  });

  it('answers for a workspace alone, and closes it alone, until that is called off', async () => {
    await hold(second);
    expect(await askFor(second)).toEqual(answered('1 thing', [{ kind: 'thing', count: 1 }]));
    const attempt_id = newId();
    expect(await askFor(first, attempt_id)).toEqual(answered(null, []));
    expect(await codeOf(take(first))).toBe('conflict');
    await take(second);
    await fixture.tell(deletionCalledOff, { team_id: team.team_id, attempt_id, revision: 1 });
    await take(first);
  });

  it('gives nothing more for ever where the deletion is forced, and ends what there is, however often it is asked', async () => {
    await hold();
    await hold(second);
    await requested({ force: true });
    expect(await codeOf(take())).toBe('conflict');
    await requested({ force: true });
    expect(await answerTo(await requested({ force: true }))).toEqual(answered(null, []));
    const [closing] = await fixture.query<{ isForEver: boolean }>(
      `SELECT until = 'infinity' AS "isForEver" FROM team_closing WHERE team_id = $1`,
      [team.team_id],
    );
    expect(closing).toEqual({ isForEver: true });
  });

  it('says how much there is while it takes long to begin to end that', async () => {
    await hold();
    await hold(second);
    const locking = await begin((manager) =>
      manager.query('SELECT FROM thing WHERE team_id = $1 FOR UPDATE', [team.team_id]),
    );
    const attempt_id = newId();
    const ending = fixture.tell(teamDeletionRequested, { team_id: team.team_id, attempt_id, revision: 1, force: true });
    while ((await answerTo(attempt_id)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await answerTo(attempt_id)).toEqual(answered('2 things', [{ kind: 'thing', count: 2 }]));
    await Promise.all([locking.end(), ending]);
  });

  it('waits for whoever is about to take something, and counts it', async () => {
    const taking = await beginToTake();
    const asking = requested();
    // For the answer.
    await untilLockWaits(fixture, { text: 'advisory' });
    await taking.end();
    expect(await answerTo(await asking)).toEqual(answered('1 thing', [{ kind: 'thing', count: 1 }]));
  });

  it('tells each of many takers of one transaction whether it may', async () => {
    await requested();
    const other = { caller: member(), teamId: newId(), workspaceId: newId() };
    const refusals = await transactions.run((manager) =>
      gate.holdAllOpen(manager, [other, { ...other, teamId: team.team_id, workspaceId: first }, other]),
    );
    expect(refusals.map((refusal) => refusal?.code)).toEqual([undefined, 'conflict', undefined]);
  });
});
