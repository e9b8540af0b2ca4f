import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { subscriptions } from '@atoll/contracts/gpuaas';
import {
  deletionCalledOff,
  teamChanged,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionAnswered,
} from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { ExpiredClosings } from '@atoll/team-directory';
import { aTeam } from '@atoll/testing';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let pool_id: string;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  ({ pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 }, { count: 4 }));
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** Asks what a team holds, or one of its workspaces, as whoever wants to delete it does, and waits for the answer. */
async function answerTo({ team_id }: ToldTeam, revision = 2, workspace_id?: string): Promise<TeamDeletionAnswered> {
  const attempt_id = newId();
  if (workspace_id === undefined) await fixture.tell(teamDeletionRequested, { team_id, revision, attempt_id });
  else await fixture.tell(workspaceDeletionRequested, { team_id, revision, attempt_id, workspace_id });
  for (;;) {
    const [answer] = answersTo(attempt_id);
    if (answer) return answer;
    await delay(5);
  }
}

function answersTo(attemptId: string): TeamDeletionAnswered[] {
  return fixture.events
    .map(({ payload }) => payload as TeamDeletionAnswered)
    .filter(({ attempt_id }) => attempt_id === attemptId);
}

const subscribe = (of = team) => fixture.subscribe(of, { pool_id });
const isAccepted = (call: Promise<unknown>) =>
  call.then(
    () => true,
    () => false,
  );
const live = async ({ team_id }: ToldTeam) =>
  (
    await fixture.query(`SELECT FROM subscription WHERE team_id = $1 AND state NOT IN ('unsubscribed', 'failed')`, [
      team_id,
    ])
  ).length;

describe('a team that is deleted with what it holds', () => {
  /** As `answerTo`; asks again with the same attempt. */
  async function force({ team_id }: ToldTeam, attempt_id: string): Promise<TeamDeletionAnswered> {
    const before = answersTo(attempt_id).length;
    await fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id, force: true });
    while (answersTo(attempt_id).length === before) await delay(5);
    return answersTo(attempt_id).at(-1)!;
  }
  const kinds = ({ remaining }: TeamDeletionAnswered) => remaining;

  it('has every subscription ended, with what runs on it, and says how many are left until none is', async () => {
    const attempt = newId();
    const [idle, busy] = [await subscribe(), await subscribe()];
    await fixture.settle();
    const { workload_id } = await fixture.start(team, busy);
    await fixture.settle();
    const fresh = await subscribe();
    expect(kinds(await force(team, attempt))).toEqual([{ kind: 'gpu_pool_subscription', count: 3 }]);
    for (const { subscription_id } of [idle, busy, fresh]) {
      const [row] = await fixture.query('SELECT state FROM subscription WHERE subscription_id = $1', [subscription_id]);
      expect(row).toEqual({ state: 'unsubscribing' });
    }
    expect(await fixture.query('SELECT state FROM workload WHERE workload_id = $1', [workload_id])).toEqual([
      { state: 'stopping' },
    ]);
    const other = await fixture.team();
    const kept = await subscribe(other);
    await fixture.settle();
    expect(await force(team, attempt)).toMatchObject({ holds: null, remaining: [] });
    expect(await fixture.subscription(other, kept)).toMatchObject({ status: 'active' });
  });

  it('gets nothing new from the first request on, while something is left, after any time, and whatever comes late', async () => {
    const attempt = newId();
    await subscribe();
    const { attempt_id: older } = await answerTo(team);
    await force(team, attempt);
    await answerTo(team);
    await fixture.tell(deletionCalledOff, { team_id: team.team_id, revision: 2, attempt_id: older });
    expect((await errorOf(subscribe())).toWire()).toMatchObject({
      code: 'conflict',
      message: 'The team is being deleted.',
    });
    await fixture.query(`UPDATE team_closing SET until = until - interval '1 year' WHERE team_id = $1`, [team.team_id]);
    expect((await errorOf(subscribe())).code).toBe('conflict');
  });

  it('is ended however much it holds, 500 subscriptions a request', async () => {
    const first = await subscribe();
    await fixture.settle();
    await fixture.query(
      `INSERT INTO subscription (team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, state, entered_at, due_at)
       SELECT team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, 'active', now(), NULL FROM subscription, generate_series(1, 600)
       WHERE subscription_id = $1`,
      [first.subscription_id],
    );
    const attempt = newId();
    const begun = async () =>
      (await fixture.query(`SELECT FROM subscription WHERE team_id = $1 AND state = 'unsubscribing'`, [team.team_id]))
        .length;
    expect(kinds(await force(team, attempt))).toEqual([{ kind: 'gpu_pool_subscription', count: 601 }]);
    expect(await begun()).toBe(500);
    await force(team, attempt);
    expect(await begun()).toBe(601);
    // Nobody has to wait until each has come to its end.
    await fixture.query(`DELETE FROM subscription WHERE team_id = $1 AND subscription_id <> $2`, [
      team.team_id,
      first.subscription_id,
    ]);
  });
});

describe('a team that is to be deleted', () => {
  it('holds what it has subscribed to, until that has ended', async () => {
    const one = await subscribe();
    expect(await answerTo(team)).toMatchObject({
      team_id: team.team_id,
      holder: 'gpuaas',
      holds: '1 GPU pool subscription',
    });
    const two = await subscribe();
    await fixture.settle();
    expect((await answerTo(team)).holds).toBe('2 GPU pool subscriptions');
    await fixture.unsubscribe(team, one);
    await fixture.unsubscribe(team, two);
    expect((await answerTo(team)).holds).toBe('2 GPU pool subscriptions');
    await fixture.settle();
    expect((await answerTo(team)).holds).toBeNull();
  });

  it('that holds something is not closed: it goes on as before', async () => {
    const held = await subscribe();
    await answerTo(team);
    expect((await subscribe()).status).toBe('subscribing');
    await fixture.settle();
    const { subscription_id } = held;
    expect((await fixture.call(subscriptions.resize, { subscription_id, vgpus: 2 }, team.member)).resize).toMatchObject(
      { vgpus: 2 },
    );
  });

  it('gets nothing new once it was said that it holds nothing, before anybody told that it is being deleted; the others do', async () => {
    const other = await fixture.team();
    expect((await answerTo(team)).holds).toBeNull();
    const { code, message } = await errorOf(subscribe());
    expect([code, message]).toEqual(['conflict', 'The team is being deleted.']);
    expect(
      (await errorOf(fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 1 }))).code,
    ).toBe('conflict');
    expect((await subscribe(other)).status).toBe('subscribing');
  });

  it('is answered each time it is asked about, also where nothing is known of it', async () => {
    const attempts = await Promise.all([answerTo(team), answerTo(team), answerTo({ ...team, team_id: newId() })]);
    expect(attempts.map(({ holds, holder }) => [holds, holder])).toEqual([
      [null, 'gpuaas'],
      [null, 'gpuaas'],
      [null, 'gpuaas'],
    ]);
  });

  it('never both holds nothing and has a subscription, whoever comes first', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, async (_, round) => {
        const racing = await fixture.team();
        const before = Array.from({ length: round % 3 }, () => isAccepted(subscribe(racing)));
        const answer = answerTo(racing);
        const after = Array.from({ length: 1 + (round % 2) }, () => isAccepted(subscribe(racing)));
        const accepted = (await Promise.all([...before, ...after])).filter(Boolean).length;
        return { holds: (await answer).holds, accepted, held: await live(racing) };
      }),
    );
    for (const { holds, accepted, held } of outcomes) {
      expect(held).toBe(accepted);
      if (holds === null) expect(accepted).toBe(0);
      else expect(accepted).toBeGreaterThan(0);
    }
  });
});

describe('a workspace that is to be deleted', () => {
  let lab: string;
  /** A team with a second workspace. */
  beforeEach(async () => {
    lab = newId();
    const workspaces = [
      { id: team.workspace_id, name: 'default' },
      { id: lab, name: 'lab' },
    ];
    await fixture.tell(teamChanged, { ...aTeam(workspaces), team_id: team.team_id, revision: 2 });
  });
  const into = (workspace_id: string) => fixture.subscribe(team, { pool_id, workspace_id });

  it('holds what was subscribed to in it, until that has ended, and nothing of the rest of its team', async () => {
    await into(team.workspace_id);
    const held = await into(lab);
    expect((await answerTo(team, 3, lab)).holds).toBe('1 GPU pool subscription');
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect((await answerTo(team, 3, lab)).holds).toBeNull();
    const { code, message } = await errorOf(into(lab));
    expect([code, message]).toEqual(['conflict', 'The workspace is being deleted.']);
    expect((await into(team.workspace_id)).status).toBe('subscribing');
  });

  it('never both holds nothing and has a subscription, whoever comes first', async () => {
    for (let round = 0; round < 12; round += 1) {
      const [racing, other] = [newId(), newId()];
      const owner = await fixture.team();
      const workspaces = [owner.workspace_id, racing, other].map((id) => ({ id, name: id }));
      await fixture.tell(teamChanged, { ...aTeam(workspaces), team_id: owner.team_id, revision: 2 });
      const subscribed = Array.from({ length: 1 + (round % 2) }, () =>
        isAccepted(fixture.subscribe(owner, { pool_id, workspace_id: racing })),
      );
      const [answer, ...accepted] = await Promise.all([answerTo(owner, 3, racing), ...subscribed]);
      expect(answer.holds === null).toBe(!accepted.some(Boolean));
    }
  });
});

it('that a team was told to hold nothing is forgotten a day after it has expired', async () => {
  await answerTo(team);
  const closings = () => fixture.query('SELECT FROM team_closing WHERE team_id = $1', [team.team_id]);
  expect(await closings()).toHaveLength(1);
  await fixture.query(`UPDATE team_closing SET until = until - interval '25 hours' WHERE team_id = $1`, [team.team_id]);
  await fixture.get(ExpiredClosings).removeSome();
  expect(await closings()).toEqual([]);
});
