import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CallContext } from '@atoll/contracts';
import { members, teams, workspaces } from '@atoll/contracts/teams';
import type { AppError } from '@atoll/errors';
import { DataSource } from 'typeorm';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { Writers } from './writers.js';

type PoolCounts = Record<'totalCount' | 'idleCount' | 'waitingCount', number>;

let fixture: TeamsFixture;
let writers: Writers;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ poolSize: 4, writerPatienceMs: 20_000 });
  writers = fixture.app.get(Writers, { strict: false });
});
afterAll(() => fixture.stop());

/** Connections to this database whose statement waits for a lock. */
const waitingForLocks = async () =>
  (await fixture.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).length;
const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
};

/** Locks the teams' rows past this service, as another replica that hangs would, until `release` is called. */
async function lockTeam(...teamIds: string[]): Promise<() => Promise<void>> {
  const runner = fixture.app.get(DataSource, { strict: false }).createQueryRunner();
  await runner.startTransaction();
  await runner.query('SELECT FROM team WHERE id = ANY ($1) FOR UPDATE', [teamIds]);
  return async () => {
    await runner.commitTransaction();
    await runner.release();
  };
}

describe('the writers of one team', () => {
  it('hold one connection, however many they are, so that other teams write and read', async () => {
    const [busy, other] = [(await fixture.createTeam()).team, (await fixture.createTeam()).team];
    const rename = (team_id: string, name: string) => fixture.call(fixture.admin, teams.update, { team_id, name });
    const release = await lockTeam(busy.id);
    const renamed = Array.from({ length: 10 }, (_, at) => rename(busy.id, `name ${at}`));
    await until(async () => (await waitingForLocks()) > 0);
    for (let round = 0; round < 2; round += 1) {
      expect(await waitingForLocks()).toBe(1);
      expect(await rename(other.id, `other ${round}`)).toMatchObject({ name: `other ${round}` });
    }
    await release();
    expect((await Promise.all(renamed)).map(({ name }) => name).toSorted()).toEqual(
      Array.from({ length: 10 }, (_, at) => `name ${at}`).toSorted(),
    );
  });

  it('do not keep keys from being verified, even where every connection of the pool is taken', async () => {
    const locked = [await fixture.createTeam('viewer')];
    for (let more = 0; more < 4; more += 1) locked.push(await fixture.createTeam());
    const pool = (fixture.app.get(DataSource, { strict: false }).driver as unknown as { master: PoolCounts }).master;
    const release = await lockTeam(locked[0]?.team.id ?? '', ...locked.slice(1).map(({ team }) => team.id));
    const waiting = locked.map(({ team }) => fixture.call(fixture.admin, teams.update, { team_id: team.id, name: 'late' }));
    await until(() => pool.totalCount === 4 && pool.idleCount === 0 && pool.waitingCount > 0);
    expect(await fixture.verify(locked[0]?.keys[0] ?? '')).toMatchObject({ scope: 'membership' });
    expect(pool.waitingCount).toBeGreaterThan(0);
    await release();
    await Promise.all(waiting);
  });

  it('are refused with 429 and a time to come again, over 32 that wait; the operator never is, and goes first', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const order: string[] = [];
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const contextOf = (key: string) => fixture.contextOf(key, teams.update, {});
    const [owner, operator] = [await contextOf(keys[0] ?? ''), await contextOf(fixture.admin)];
    const write = (name: string, context: CallContext) => writers.run(team.id, context, () => Promise.resolve(order.push(name)));
    const first = writers.run(team.id, owner, () => finished);
    const waiting = Array.from({ length: 32 }, (_, at) => write(`owner ${at}`, owner));
    const refused: AppError = await errorOf(write('owner 32', owner));
    expect(refused.toWire()).toEqual({
      code: 'too_many_requests',
      message: 'Too many requests. Please try again later.',
      retryAfterSeconds: 1,
    });
    const byOperator = write('operator', operator);
    finish();
    await Promise.all([first, byOperator, ...waiting]);
    expect(order).toEqual(['operator', ...Array.from({ length: 32 }, (_, at) => `owner ${at}`)]);
    expect(await write('afterwards', owner)).toBe(34);
  });

  it('are refused when their patience ends before their turn comes, and hold up nobody afterwards', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const context = await fixture.contextOf(keys[0] ?? '', teams.update, {});
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const first = writers.run(team.id, context, () => finished);
    const hasty = { ...context, deadlineAtMs: Date.now() + 1_050 };
    const [refused, kept] = [
      errorOf(writers.run(team.id, hasty, () => Promise.resolve())),
      writers.run(team.id, context, () => Promise.resolve('kept')),
    ];
    expect((await refused).code).toBe('too_many_requests');
    finish();
    await first;
    expect(await kept).toBe('kept');
    expect(await writers.run(team.id, context, () => Promise.resolve('next'))).toBe('next');
  });

  it('leave their turn to the next one when they fail', async () => {
    const { team } = await fixture.createTeam();
    const context = await fixture.contextOf(fixture.admin, teams.update, {});
    await errorOf(fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'default' }));
    await expect(writers.run(team.id, context, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await writers.run(team.id, context, () => Promise.resolve('next'))).toBe('next');
  });

  it('with one Idempotency-Key get 409 at once while the first of them waits', async () => {
    const { team } = await fixture.createTeam();
    const release = await lockTeam(team.id);
    const create = () => fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'lab' }, 'one-key');
    const first = create();
    await until(async () => (await waitingForLocks()) > 0);
    expect((await errorOf(create())).toWire()).toMatchObject({
      code: 'conflict',
      message: 'A request with this Idempotency-Key is still running.',
    });
    await release();
    const created = await first;
    expect(await create()).toEqual(created);
  });

  it('of another team do not wait with them, also where their call is refused', async () => {
    const [busy, other] = [await fixture.createTeam('team_owner'), await fixture.createTeam('team_owner')];
    const context = await fixture.contextOf(busy.keys[0] ?? '', teams.update, {});
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const first = writers.run(busy.team.id, context, () => finished);
    const asked = { team_id: busy.team.id, user_id: busy.userIds[0] ?? '' };
    expect((await errorOf(fixture.call(other.keys[0] ?? '', members.issueKey, asked))).code).toBe('not_found');
    finish();
    await first;
  });
});
