import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { countedRowsLimit, type MachineKind } from '@atoll/contracts/operator';
import { newId } from '@atoll/database';
import { errorOf, mostRowsRead, statementsOf } from '@atoll/testing';
import type { DiscoveryService } from '@nestjs/core';
import { berths as machineOfBerths, Harbour } from './berth-fixture.js';
import type { StateDefinition } from './definition.js';
import { MachineDesk } from './machine-desk.js';
import { machinesController } from './machine-desk.module.js';
import { MachineWorkers } from './machine-workers.js';

const ended: StateDefinition = { rule: undefined, isReviewed: false, neverRests: false, isFinal: true, on: new Map() };
const towed: StateDefinition = { ...ended, isReviewed: true, neverRests: true, isFinal: false };
const queued: StateDefinition = {
  ...ended,
  rule: { deadlineMs: 60_000, givesUpBy: 'FAILED', portion: 8 },
  isFinal: false,
};
const clearFailed: StateDefinition = { ...ended, isFinal: false, on: new Map([['LEAVE', 'clearing']]) };

let harbour: Harbour;
let desk: MachineDesk;
beforeAll(async () => {
  harbour = await Harbour.open();
  await harbour.dataSource.query(`CREATE INDEX ON berth (berth_id) WHERE state = 'towed'`);
  await harbour.dataSource.query(
    `CREATE INDEX ON berth (entered_at, berth_id) WHERE state = 'queued' AND deadline_at IS NULL`,
  );
});
beforeEach(() => {
  desk = deskOf(['clear_failed', clearFailed]);
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

/** Of berths that may also be in these states. */
function deskOf(...more: [string, StateDefinition][]): MachineDesk {
  const { definition } = machineOfBerths;
  const states = new Map<string, StateDefinition>([...definition.states, ['failed', ended], ['towed', towed], ...more]);
  const machine = Object.assign(harbour.machine, { definition: { ...definition, states } });
  const workers = new MachineWorkers([machine], harbour.dataSource, harbour.transactions, {
    service: 'harbour',
    isIdle: true,
  });
  const getProviders = () => [{ instance: workers }, { instance: null }, { instance: workers }];
  return new MachineDesk({ getProviders } as unknown as DiscoveryService, harbour.dataSource);
}

/** Berths in a state since so many seconds. */
async function berths(
  count: number,
  state: string,
  { ageSeconds = 0, attempts = 0, deadline = 'NULL' } = {},
): Promise<void> {
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, entered_at, deadline_at, attempts, parked_until, last_error)
     SELECT 'ship ' || n, $2, now() - $3 * interval '1 second', ${deadline}, $4, CASE WHEN $4 > 0 THEN now() END,
            CASE WHEN $4 > 0 THEN '{"code": "stuck", "message": "The dredger is away.", "at": "2026-11-22T10:00:00.000Z"}'::jsonb END
     FROM generate_series(1, $1) n`,
    [count, state, ageSeconds, attempts],
  );
}

/** The most that one of its statements reads. */
async function rowsRead(work: () => Promise<unknown>): Promise<number> {
  await harbour.dataSource.query('VACUUM ANALYZE berth');
  const sent = await statementsOf(work);
  return Math.max(...(await Promise.all(sent.map((statement) => mostRowsRead(harbour.dataSource, statement)))));
}

const states = async () => (await desk.states('pods')).data;
const list = (kind: MachineKind, more: { state?: string; page?: number; limit?: number } = {}) =>
  desk.list({ service: 'pods', machine: 'berth', kind, ...more });

const inAnHour = `now() + interval '1 hour'`;
const anHourAgo = `now() - interval '1 hour'`;

describe('what waits or has failed', () => {
  it('counts and lists what has not been begun', async () => {
    desk = deskOf(['queued', queued]);
    await berths(3, 'queued');
    await berths(2, 'queued', { deadline: inAnHour });
    expect(await states()).toMatchObject([{ state: 'queued', kind: 'waiting', count: 5, overdue: 0, retrying: 0 }]);
    const { data } = await list('waiting');
    expect(data.filter(({ deadline_at }) => deadline_at === null)).toHaveLength(3);
  });

  it('is counted by state and age, and what is at rest is not', async () => {
    await berths(3, 'dredging', { deadline: inAnHour });
    await berths(2, 'dredging', { deadline: anHourAgo, ageSeconds: 7_200, attempts: 2 });
    await berths(5, 'in_use');
    await berths(1, 'in_use', { attempts: 1, ageSeconds: 120 });
    await berths(4, 'free');
    await berths(2, 'towed', { ageSeconds: 7_200 });
    await berths(1, 'clear_failed', { ageSeconds: 90_000 });
    expect(await states()).toMatchObject([
      {
        state: 'clear_failed',
        kind: 'failed',
        count: 1,
        overdue: 0,
        ages: { under_minute: 0, under_hour: 0, under_day: 0, older: 1 },
      },
      {
        service: 'pods',
        machine: 'berth',
        state: 'dredging',
        kind: 'waiting',
        count: 5,
        has_more: false,
        overdue: 2,
        retrying: 2,
        ages: { under_minute: 3, under_hour: 0, under_day: 2, older: 0 },
      },
      {
        state: 'in_use',
        kind: 'waiting',
        count: 1,
        retrying: 1,
        ages: { under_minute: 0, under_hour: 1, under_day: 0, older: 0 },
      },
      // It never rests, so it waits, though nothing is due.
      {
        state: 'towed',
        kind: 'waiting',
        count: 2,
        overdue: 0,
        ages: { under_minute: 0, under_hour: 0, under_day: 2, older: 0 },
      },
    ]);
  });

  it('is shown for a week where it has failed and ended, and for ever where something can still be done', async () => {
    await berths(1, 'failed', { ageSeconds: 6 * 86_400 });
    await berths(2, 'failed', { ageSeconds: 8 * 86_400 });
    await berths(3, 'clear_failed', { ageSeconds: 400 * 86_400 });
    expect(await states()).toMatchObject([
      { state: 'clear_failed', count: 3 },
      { state: 'failed', count: 1 },
    ]);
    expect((await list('failed')).pagination.total).toBe(4);
  });

  it('is listed with its error, what entered its state first first, in pages that hold each once', async () => {
    await berths(3, 'dredging', { deadline: inAnHour });
    await berths(2, 'filling', { deadline: inAnHour, ageSeconds: 60, attempts: 1 });
    // The first of each instant, by its key, lies behind the others in the table.
    await harbour.dataSource.query(
      'UPDATE berth SET attempts = attempts WHERE berth_id IN (SELECT min(berth_id) FROM berth GROUP BY entered_at)',
    );
    const { data, pagination } = await list('waiting');
    const keys = data.map(({ key }) => Number(key));
    for (const ofOneInstant of [keys.slice(0, 2), keys.slice(2)])
      expect(ofOneInstant).toEqual(ofOneInstant.toSorted((one, other) => one - other));
    expect(pagination).toEqual({ page: 1, limit: 10, total: 5 });
    expect(data.map(({ state }) => state)).toEqual(['filling', 'filling', 'dredging', 'dredging', 'dredging']);
    expect(data[0]).toMatchObject({
      attempts: 1,
      error: { code: 'stuck', message: 'The dredger is away.', at: '2026-11-22T10:00:00.000Z' },
      next_try_at: expect.stringMatching(/Z$/),
    });
    const pages = [
      await list('waiting', { limit: 2 }),
      await list('waiting', { limit: 2, page: 2 }),
      await list('waiting', { limit: 2, page: 3 }),
    ];
    expect(pages.flatMap((page) => page.data)).toEqual(data);
    expect((await list('waiting', { state: 'filling' })).pagination.total).toBe(2);
    expect((await list('failed')).data).toEqual([]);
  });

  it('is counted to a limit, and says so, so that a flood costs no more than the limit', async () => {
    await berths(countedRowsLimit + 1, 'dredging', { deadline: inAnHour });
    expect(await states()).toMatchObject([{ count: countedRowsLimit, has_more: true }]);
    expect((await list('waiting')).pagination.total).toBe(countedRowsLimit);
  });

  it('is read without a look at the rows that are at rest, however many those are', async () => {
    await berths(20_000, 'free');
    await berths(2, 'dredging', { deadline: inAnHour });
    await berths(2, 'clear_failed');
    await harbour.dataSource.query('ANALYZE berth');
    const sent = await statementsOf(async () => {
      await desk.states('pods');
      await list('failed');
      await list('waiting');
    });
    for (const { text, values } of sent) {
      const plan = await harbour.dataSource.query<object[]>(`EXPLAIN ${text}`, values);
      expect(JSON.stringify(plan)).not.toContain('Seq Scan on berth');
    }
    expect(sent.length).toBeGreaterThan(3);
  });

  it('is read without those that are parked for their next review, however many those are', async () => {
    await berths(2, 'dredging', { deadline: inAnHour });
    await berths(1, 'in_use', { attempts: 1 });
    await berths(20_000, 'in_use');
    await harbour.dataSource.query(`UPDATE berth SET parked_until = now() + interval '1 hour' WHERE state = 'in_use'`);
    expect(await rowsRead(() => list('waiting'))).toBeLessThan(100);
    expect(await rowsRead(() => desk.states('pods'))).toBeLessThan(100);
  });

  it('is read without those that have failed and ended long ago, however many those are', async () => {
    desk = deskOf();
    await berths(20_000, 'failed', { ageSeconds: 8 * 86_400 });
    await berths(300, 'failed', { ageSeconds: 60 });
    expect(await rowsRead(() => desk.states('pods'))).toBeLessThan(400);
    expect(await rowsRead(() => list('failed'))).toBeLessThan(400);
    expect((await list('failed')).pagination.total).toBe(300);
  });

  it('is the operator’s alone to count and to list', async () => {
    const Controller = machinesController('pods');
    const operations = new Controller(desk) as Record<
      'states' | 'list',
      (asked: object, context: object) => Promise<object>
    >;
    const asked = { service: 'pods', machine: 'berth', kind: 'waiting' };
    for (const act of ['states', 'list'] as const) {
      const owner = { kind: 'user', platformAdmin: false, teams: [{ teamId: newId(), role: 'team_owner' }] };
      expect([act, await errorOf(operations[act](asked, { caller: owner }))]).toMatchObject([
        act,
        { code: 'forbidden' },
      ]);
      const operator = { ...owner, platformAdmin: true };
      expect(await operations[act](asked, { caller: operator })).toMatchObject({ data: [] });
    }
  });

  it('is not found under the name of no machine', async () => {
    const unknown = desk.list({ service: 'pods', machine: 'lighthouse', kind: 'failed' });
    expect(await errorOf(unknown)).toMatchObject({ code: 'not_found', message: 'No such state machine.' });
  });
});
