import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import {
  deletionCalledOff,
  teamDeletionAnswered,
  teamDeletionRequested,
  teams,
  teamUpdated,
  workspaces,
  type TeamDeletion,
  type TeamHolding,
} from '@atoll/contracts/teams';
import { Transactions } from '@atoll/database';
import { Outbox } from '@atoll/events';
import { timeoutFactor } from '@atoll/testing';
import { DataSource, type EntityManager } from 'typeorm';
import { errorOf, TeamsFixture, type MadeTeam } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';
import { ForcedDeletionService } from './forced-deletion.service.js';
import { HolderAnswers } from './holder-answers.js';
import { TeamUpkeep } from './team-upkeep.js';

let fixture: TeamsFixture;
let made: MadeTeam;
let team_id: string;
beforeAll(async () => {
  fixture = await TeamsFixture.start({
    deletionHolders: ['pods', 'gpuaas'],
    deletionPatienceMs: 2_000 * timeoutFactor,
    upkeepMs: 20,
  });
});
beforeEach(async () => {
  patience(0);
  made = await fixture.createTeam('team_owner', 'team_admin');
  team_id = made.team.id;
});
afterAll(() => fixture.stop());

const force = (key = made.keys[0] ?? ''): Promise<TeamDeletion> =>
  fixture.call(key, teams.delete, { team_id, force: 'true' });
/** How long the answer to a deletion waits from now on. */
const patience = (ms: number) => (fixture.get(TeamsSettings).forcedDeletionPatienceMs = ms);
const subscriptions = (count: number): TeamHolding[] => [{ kind: 'gpu_pool_subscription', count }];

/** The attempt to which the holders are to answer. */
async function attempt(of = team_id): Promise<string> {
  const requests = await fixture.told(teamDeletionRequested, of, ({ length }) => length > 0);
  return requests.findLast((request) => request.force)?.attempt_id ?? '';
}

/** What a holder answers to the deletion that is under way; `null`: nothing is left. */
async function answer(
  holder: string,
  holds: string | null,
  remaining?: TeamHolding[],
  attempt_id?: string,
): Promise<void> {
  const answered = {
    team_id,
    attempt_id: attempt_id ?? (await attempt()),
    holder,
    holds,
    ...(remaining && { remaining }),
  };
  await fixture.app
    .get(Transactions, { strict: false })
    .run((manager) => fixture.app.get(Outbox, { strict: false }).add(manager, teamDeletionAnswered, answered));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(25);
}

const isGone = async () =>
  (await fixture.query('SELECT FROM team WHERE id = $1 AND deleted_at IS NOT NULL', [team_id])).length > 0;

describe('a deletion that is forced', () => {
  it('ends with the team where every holder answers in time that nothing is left', async () => {
    patience(12_000 * timeoutFactor);
    const deleted = force();
    await answer('pods', null, []);
    await answer('gpuaas', '2 GPU pool subscriptions', subscriptions(2));
    await answer('gpuaas', null, []);
    expect(await deleted).toEqual({ deleting: null });
    expect((await errorOf(fixture.verify(made.keys[0] ?? ''))).code).toBe('unauthenticated');
    expect((await errorOf(fixture.call(fixture.admin, teams.get, { team_id }))).code).toBe('not_found');
    const told = await fixture.told(teamUpdated, team_id, (payloads) =>
      payloads.some(({ team }) => team?.status === 'deleted'),
    );
    expect(told.map(({ team }) => team?.status)).toEqual(['active', 'deleting', 'deleted']);
    for (const { user_id } of made.team.members) expect(fixture.credentialsChanged).toContain(user_id);
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('asks every holder to end what it holds, also what the team is known to hold', async () => {
    patience(12_000 * timeoutFactor);
    await fixture.query(`INSERT INTO team_capacity VALUES ($1, '{1}', true, 1)`, [team_id]);
    const deleted = force();
    const [request] = await fixture.told(teamDeletionRequested, team_id, ({ length }) => length > 0);
    expect(request).toMatchObject({ team_id, force: true });
    await Promise.all([answer('pods', null), answer('gpuaas', null)]);
    expect(await deleted).toEqual({ deleting: null });
  });

  it('says after its time what is left, and goes on by itself until nothing is', async () => {
    await force();
    await answer('pods', '1 pod', [{ kind: 'pod', count: 1 }]);
    await answer('gpuaas', '3 GPU pool subscriptions', subscriptions(3));
    await until(
      async () =>
        (await fixture.query('SELECT FROM deletion_answer WHERE attempt_id = $1', [await attempt()])).length === 2,
    );
    expect(await force()).toEqual({
      deleting: { id: team_id, status: 'deleting', remaining: [...subscriptions(3), { kind: 'pod', count: 1 }] },
    });
    expect(await fixture.call(fixture.admin, teams.get, { team_id })).toMatchObject({ status: 'deleting' });
    await answer('pods', null, []);
    await answer('gpuaas', null, []);
    await until(isGone);
  });

  it('shows a holder that is silent, or says only in words what it holds, as one of which no number is known', async () => {
    const deleted = force();
    await answer('pods', 'something');
    expect(await deleted).toMatchObject({
      deleting: {
        remaining: [
          { kind: 'pods', count: null },
          { kind: 'gpuaas', count: null },
        ],
      },
    });
    await answer('pods', null);
    await until(
      async () =>
        (await fixture.query(`SELECT FROM deletion_answer WHERE holder = 'pods' AND holds IS NULL`)).length > 0,
    );
    expect(await fixture.app.get(TeamUpkeep, { strict: false }).look()).toBe(true);
    expect(await isGone()).toBe(false);
    await answer('gpuaas', null);
    await until(isGone);
  });

  it('never takes an answer that comes while it looks for none and for nothing at once', async () => {
    await force();
    const attempt_id = await attempt();
    await fixture.query(`INSERT INTO deletion_answer (attempt_id, holder, holds) VALUES ($1, 'pods', NULL)`, [
      attempt_id,
    ]);
    const { manager } = fixture.app.get(DataSource, { strict: false });
    let reads = 0;
    // After whatever it reads first, the answer of the other holder is there.
    const interrupted = new Proxy(manager, {
      get: (target, name: keyof EntityManager) =>
        typeof target[name] !== 'function' || !name.startsWith('find')
          ? target[name]
          : async (...what: never[]) => {
              const found: unknown = await Reflect.apply(
                target[name] as (...args: never[]) => Promise<unknown>,
                target,
                what,
              );
              reads += 1;
              if (reads === 1) {
                await fixture.query(
                  `INSERT INTO deletion_answer (attempt_id, holder, holds, remaining) VALUES ($1, 'gpuaas', '1 GPU pool subscription', $2)
                   ON CONFLICT DO NOTHING`,
                  [attempt_id, JSON.stringify(subscriptions(1))],
                );
              }
              return found;
            },
    });
    const answers = fixture.app.get(HolderAnswers, { strict: false });
    expect(await answers.remaining(interrupted, attempt_id)).toEqual([{ kind: 'gpuaas', count: null }]);
    await fixture.query(`DELETE FROM deletion_answer WHERE attempt_id = $1 AND holder = 'gpuaas'`, [attempt_id]);
    reads = 0;
    expect((await answers.objection(interrupted, attempt_id, 'team'))?.code).toBe('unavailable');
    expect(await answers.remaining(manager, attempt_id)).toEqual(subscriptions(1));
  });

  it('asks again and again, less and less often, always in the name of one attempt', async () => {
    await force();
    const requests = await fixture.told(teamDeletionRequested, team_id, ({ length }) => length >= 4);
    expect(new Set(requests.map(({ attempt_id }) => attempt_id)).size).toBe(1);
    /** Asks as if the deletion had begun that long ago; whether it is due again after a wait that is so long. */
    const isDueAfter = async (age: string, wait: string): Promise<boolean> => {
      const [before] = await fixture.query<{ instant: string }>('SELECT clock_timestamp()::text AS instant');
      await fixture.query(
        `UPDATE team SET forced_deletion_began_at = now() - $2::interval, forced_deletion_due_at = now() - interval '1 s' WHERE id = $1`,
        [team_id, age],
      );
      const due = () =>
        fixture.query<{ is_so: boolean }>(
          `SELECT forced_deletion_due_at BETWEEN $2::timestamptz + $3::interval
             AND clock_timestamp() + $3::interval + (clock_timestamp() - $2::timestamptz) / 4 AS is_so
           FROM team WHERE id = $1 AND forced_deletion_due_at > $2`,
          [team_id, before?.instant, wait],
        );
      await until(async () => (await due()).length > 0);
      return (await due())[0]?.is_so ?? false;
    };
    expect(await isDueAfter('40 s', '10 s')).toBe(true);
    expect(await isDueAfter('1 day', '1 minute')).toBe(true);
    // Not a minute later.
    await Promise.all([answer('pods', null), answer('gpuaas', null)]);
    await until(isGone);
  });

  it('asks soon for whoever joins it, however long it has taken', async () => {
    await force();
    await fixture.query(`UPDATE team SET forced_deletion_due_at = now() + interval '1 hour' WHERE id = $1`, [team_id]);
    await force();
    const isSoon = `SELECT FROM team WHERE id = $1 AND forced_deletion_due_at < now() + interval '5 minutes'`;
    await until(async () => (await fixture.query(isSoon, [team_id])).length > 0);
  });

  it('is joined by whoever asks once more, and refused to a deletion that is not forced', async () => {
    const first = await force();
    expect(first.deleting?.remaining).toHaveLength(2);
    patience(12_000 * timeoutFactor);
    const again = force(fixture.admin);
    const refused = await errorOf(fixture.call(made.keys[0] ?? '', teams.delete, { team_id }));
    expect([refused.code, refused.message]).toEqual(['conflict', 'The team is already being deleted.']);
    await Promise.all([answer('pods', null), answer('gpuaas', null)]);
    expect(await again).toEqual({ deleting: null });
    const requests = await fixture.told(teamDeletionRequested, team_id, ({ length }) => length > 0);
    expect(new Set(requests.map(({ attempt_id }) => attempt_id)).size).toBe(1);
    expect((await errorOf(force(fixture.admin))).code).toBe('not_found');
  });

  it('takes over from one that is not forced, which then calls nothing off', async () => {
    const plain = errorOf(fixture.call(made.keys[0] ?? '', teams.delete, { team_id }));
    const [request] = await fixture.told(teamDeletionRequested, team_id, ({ length }) => length > 0);
    const forced = force();
    await fixture.told(teamDeletionRequested, team_id, (payloads) => payloads.some((each) => each.force));
    await answer('gpuaas', '1 GPU pool subscription', subscriptions(1), request?.attempt_id);
    expect((await plain).code).toBe('unavailable');
    expect((await forced).deleting?.remaining).toHaveLength(2);
    expect(
      fixture.events.filter(
        ({ name, payload }) => name === deletionCalledOff.name && (payload as { team_id: string }).team_id === team_id,
      ),
    ).toEqual([]);
    expect(await fixture.call(fixture.admin, teams.get, { team_id })).toMatchObject({ status: 'deleting' });
  });

  it('is for a team_owner and the operator, by the role of now, and for nobody of another team', async () => {
    expect((await errorOf(force(made.keys[1]))).code).toBe('forbidden');
    const stranger = (await fixture.createTeam('team_owner')).keys[0];
    expect((await errorOf(force(stranger))).toWire()).toMatchObject({ code: 'not_found', message: 'No such team.' });
    const context = await fixture.contextOf(made.keys[0] ?? '', teams.delete, {});
    await fixture.query(`UPDATE membership SET role = 'team_admin' WHERE team_id = $1 AND user_id = $2`, [
      team_id,
      made.userIds[0],
    ]);
    expect((await errorOf(fixture.ask(teams.delete, { team_id, force: 'true' }, context))).code).toBe('forbidden');
    expect(await fixture.call(fixture.admin, teams.get, { team_id })).toMatchObject({ status: 'active' });
  });

  it('gives the team nothing new', async () => {
    await force();
    expect((await errorOf(fixture.call(fixture.admin, workspaces.create, { team_id, name: 'new' }))).code).toBe(
      'conflict',
    );
  });

  it('is not called off when its time is over, as one that is not forced is', async () => {
    await force();
    await fixture.query(`UPDATE team SET forced_deletion_due_at = now() - interval '1 day' WHERE id = $1`, [team_id]);
    const isLookedAfter = 'SELECT FROM team WHERE id = $1 AND forced_deletion_due_at > now()';
    await until(async () => (await fixture.query(isLookedAfter, [team_id])).length > 0);
    expect(await fixture.call(fixture.admin, teams.get, { team_id })).toMatchObject({ status: 'deleting' });
  });
});

describe('a forced deletion of which the process dies', () => {
  it('is concluded by another replica, once however many there are', async () => {
    // Begun, and nobody waits for it any more: as a crash between two steps leaves it.
    patience(0);
    await force(fixture.admin);
    const attempt_id = await attempt();
    await fixture.query(
      `INSERT INTO deletion_answer (attempt_id, holder, holds) VALUES ($1, 'pods', NULL), ($1, 'gpuaas', NULL)`,
      [attempt_id],
    );
    const forced = fixture.app.get(ForcedDeletionService, { strict: false });
    await Promise.all([
      forced.goOn(team_id),
      forced.goOn(team_id),
      forced.goOn(team_id),
      fixture.app.get(TeamUpkeep, { strict: false }).look(),
    ]);
    expect(await isGone()).toBe(true);
    const told = await fixture.told(teamUpdated, team_id, (payloads) =>
      payloads.some(({ team }) => team?.status === 'deleted'),
    );
    expect(told.filter(({ team }) => team?.status === 'deleted')).toHaveLength(1);
  });

  it('goes on though that of another team cannot', async () => {
    const broken = (await fixture.createTeam()).team.id;
    await fixture.call(fixture.admin, teams.delete, { team_id: broken, force: 'true' });
    const forced = fixture.app.get(ForcedDeletionService, { strict: false });
    const original = forced.goOn.bind(forced);
    const goOn = jest
      .spyOn(forced, 'goOn')
      .mockImplementation((id) => (id === broken ? Promise.reject(new Error('broken')) : original(id)));
    try {
      await force();
      await fixture.query("UPDATE team SET forced_deletion_due_at = now() - interval '1 day' WHERE id = $1", [broken]);
      await Promise.all([answer('pods', null), answer('gpuaas', null)]);
      await until(async () => !(await fixture.app.get(TeamUpkeep, { strict: false }).look()) && (await isGone()));
    } finally {
      goOn.mockRestore();
    }
  });

  it('is found by the service when it starts', async () => {
    await force();
    const { rows } = {
      rows: await fixture.query<{ id: string }>('SELECT id FROM team WHERE forced_deletion_due_at IS NOT NULL'),
    };
    expect(rows.map(({ id }) => id)).toContain(team_id);
    await Promise.all([answer('pods', null), answer('gpuaas', null)]);
    await until(async () => (await fixture.app.get(TeamUpkeep, { strict: false }).look()) && (await isGone()));
  });
});
