import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type Nothing } from '@atoll/contracts';
import {
  deletionCalledOff,
  teamUpdated,
  teamDeletionAnswered,
  workspaceDeletionRequested,
  workspaces,
  type WorkspaceDeletionRequested,
} from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { systemContext } from '@atoll/rpc';
import { timeoutFactor } from '@atoll/testing';
import { withPatience } from '@atoll/waiting';
import { HolderAnswers } from '../teams/holder-answers.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({
    deletionHolders: ['pods', 'gpuaas'],
    deletionPatienceMs: 12_000 * timeoutFactor,
  });
});
afterEach(() => void patience(12_000 * timeoutFactor));
afterAll(() => fixture.stop());

/** How long a deletion waits for answers from now on. */
const patience = (ms: number) => (fixture.get(TeamsSettings).deletionPatienceMs = ms);

async function aWorkspace(): Promise<{ teamId: string; id: string; key: string }> {
  const { team, keys } = await fixture.createTeam('team_admin');
  const [key = ''] = keys;
  const { id } = await fixture.call(key, workspaces.create, { team_id: team.id, name: 'lab' });
  return { teamId: team.id, id, key };
}

const remove = ({ id, key }: { id: string; key: string }): Promise<Nothing> =>
  fixture.call(key, workspaces.delete, { workspace_id: id });
const namesOf = async (team_id: string) =>
  (await fixture.call(fixture.admin, workspaces.list, { team_id })).data.map(({ name }) => name);
/** The attempts that were told of, when there are so many. */
const attempts = (teamId: string, count = 1): Promise<WorkspaceDeletionRequested[]> =>
  fixture.told(workspaceDeletionRequested, teamId, ({ length }) => length === count);

/** What a service that was asked says. */
async function answer(team_id: string, holder: string, holds: string | null, attempt?: string): Promise<void> {
  const attempt_id = attempt ?? (await attempts(team_id))[0]?.attempt_id ?? '';
  const answered = { team_id, attempt_id, holder, holds };
  await fixture.app
    .get(Transactions, { strict: false })
    .run((manager) => fixture.app.get(Outbox, { strict: false }).add(manager, teamDeletionAnswered, answered));
}

describe('deleting a workspace', () => {
  it('asks whoever may hold something in it, then deletes it and publishes that it is gone', async () => {
    const one = await aWorkspace();
    const deleted = remove(one);
    expect((await attempts(one.teamId))[0]).toMatchObject({ team_id: one.teamId, workspace_id: one.id });
    await answer(one.teamId, 'pods', null);
    await answer(one.teamId, 'gpuaas', null);
    expect(await deleted).toEqual({});
    const told = await fixture.told(teamUpdated, one.teamId, ({ length }) => length === 3);
    expect(told.at(-1)?.workspaces).toEqual([{ id: one.id, name: expect.any(String), is_deleted: true }]);
    expect((await errorOf(remove(one))).code).toBe('not_found');
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('does not where it is concluded so late that a holder may have taken something new since its answer', async () => {
    const one = await aWorkspace();
    const deleted = errorOf(remove(one));
    const [attempt] = await attempts(one.teamId);
    await fixture.query(
      `UPDATE workspace SET deletion_deadline = clock_timestamp() - interval '16 seconds' WHERE id = $1`,
      [one.id],
    );
    await answer(one.teamId, 'pods', null);
    await answer(one.teamId, 'gpuaas', null);
    expect((await deleted).code).toBe('unavailable');
    expect(await namesOf(one.teamId)).toEqual(['default', 'lab']);
    expect(await fixture.told(deletionCalledOff, one.teamId, ({ length }) => length === 1)).toMatchObject([
      { attempt_id: attempt?.attempt_id },
    ]);
  });

  it('does not while something is held in it, and the caller is told what', async () => {
    const one = await aWorkspace();
    const deleted = errorOf(remove(one));
    await answer(one.teamId, 'pods', null);
    await answer(one.teamId, 'gpuaas', '2 GPU pool subscriptions');
    const { code, message } = await deleted;
    expect([code, message]).toEqual(['conflict', 'The workspace still holds something: 2 GPU pool subscriptions.']);
    expect(await namesOf(one.teamId)).toEqual(['default', 'lab']);
    expect(await fixture.query('SELECT FROM workspace WHERE deletion_attempt_id IS NOT NULL')).toEqual([]);
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('does not where somebody does not answer in time; what was answered to another attempt counts for nothing', async () => {
    patience(500);
    const one = await aWorkspace();
    const deleted = errorOf(remove(one));
    await answer(one.teamId, 'pods', null);
    await answer(one.teamId, 'gpuaas', null, newId());
    const { code, details } = await deleted;
    expect([code, details.retryAfterSeconds]).toEqual(['unavailable', 5]);
    expect(await namesOf(one.teamId)).toEqual(['default', 'lab']);
  });

  it('waits for answers no longer than that, although the clock is set back meanwhile', async () => {
    patience(500);
    const waiting = fixture.get(HolderAnswers).wait(newId(), systemContext('teams'));
    const realNow = Date.now;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 3_600_000);
    try {
      const ended = waiting.then(() => 'ended');
      expect(await withPatience(ended, 20_000 * timeoutFactor, 'late')).toBe('ended');
    } finally {
      clock.mockRestore();
    }
  });

  it('goes on where a process died that had asked: once that one had its time, and not before', async () => {
    const one = await aWorkspace();
    const leave = (deadline: string) =>
      fixture.query(
        `UPDATE workspace SET deletion_attempt_id = gen_random_uuid(), deletion_deadline = ${deadline} WHERE id = $1`,
        [one.id],
      );
    await leave(`now() + interval '1 minute'`);
    const refused = await errorOf(remove(one));
    expect([refused.code, refused.message]).toEqual(['conflict', 'The workspace is already being deleted.']);
    await leave(`now() - interval '1 millisecond'`);
    await fixture.query(
      `INSERT INTO deletion_answer (attempt_id, holder, holds) SELECT deletion_attempt_id, 'pods', 'a pod' FROM workspace WHERE id = $1`,
      [one.id],
    );
    const deleted = remove(one);
    for (const holder of ['pods', 'gpuaas']) await answer(one.teamId, holder, null);
    expect(await deleted).toEqual({});
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('that many ask for at once happens once, and the others are told at once', async () => {
    const one = await aWorkspace();
    const outcomes = Promise.all(
      Array.from({ length: 5 }, () =>
        remove(one).then(
          () => 'deleted',
          ({ code }: AppError) => code,
        ),
      ),
    );
    for (const holder of ['pods', 'gpuaas']) await answer(one.teamId, holder, null);
    const all = await outcomes;
    expect(all.filter((outcome) => outcome === 'deleted')).toHaveLength(1);
    // One that comes when all is done finds it gone.
    expect(all.filter((outcome) => !['deleted', 'conflict', 'not_found'].includes(outcome))).toEqual([]);
    expect(await namesOf(one.teamId)).toEqual(['default']);
  });

  it('that comes to nothing is told to those who were asked', async () => {
    const one = await aWorkspace();
    const deleted = errorOf(remove(one));
    const [asked] = await attempts(one.teamId);
    await answer(one.teamId, 'pods', 'pod trainer-abcde');
    await answer(one.teamId, 'gpuaas', null);
    await deleted;
    const [calledOff] = await fixture.told(deletionCalledOff, one.teamId, ({ length }) => length === 1);
    expect(calledOff?.attempt_id).toBe(asked?.attempt_id);
  });

  it('asks nobody about the default one, nor for somebody who may not', async () => {
    const { team, keys } = await fixture.createTeam('member');
    const id = team.workspaces[0]?.id ?? '';
    expect((await errorOf(remove({ id, key: fixture.admin }))).code).toBe('conflict');
    expect((await errorOf(remove({ id, key: keys[0] ?? '' }))).code).toBe('forbidden');
    const stranger = await fixture.createTeam('team_owner');
    expect((await errorOf(remove({ id, key: stranger.keys[0] ?? '' }))).code).toBe('not_found');
    expect(
      await fixture.query('SELECT FROM workspace WHERE id = $1 AND deletion_attempt_id IS NOT NULL', [id]),
    ).toEqual([]);
  });
});
