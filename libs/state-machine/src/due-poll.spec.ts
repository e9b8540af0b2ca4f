import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { Statements } from '@atoll/database';
import { runs } from '@atoll/testing';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { eventually, Harbour } from './berth-fixture.js';
import { dueSql } from './due-sql.js';
import { DuePoll } from './due-poll.js';

const tables = [
  { table: 'berth', key: 'berth_id', states: ['in_use', 'free'], portioned: [] },
  { table: 'pier', key: 'berth_id', states: ['in_use', 'closed', 'dredging'], portioned: ['dredging'] },
] as const;

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
  await harbour.dataSource.query('CREATE TABLE pier (LIKE berth INCLUDING ALL)');
});
beforeEach(async () => {
  await harbour.dataSource.query('DELETE FROM berth; DELETE FROM pier');
});
afterAll(() => harbour.close());

/** Minutes from now, for the columns that say when there is something to do. */
interface Waiting {
  readonly due: number | null;
  readonly parked: number | null;
  readonly deadline: number | null;
  readonly claimed: number | null;
  readonly attempts: number;
  readonly state: 'in_use' | 'closed' | 'dredging';
}

type Polled = (typeof tables)[number];

const minutes = fc.option(fc.constantFrom(-1, 1), { nil: null });
const state = fc.constantFrom('in_use' as const, 'closed' as const, 'dredging' as const);
const waiting = fc.record({
  due: minutes,
  parked: minutes,
  deadline: minutes,
  claimed: minutes,
  attempts: fc.nat(1),
  state,
});
/** Most rows are at rest, so that one is often the only one that is not. */
const rows = fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: waiting }), {
  maxLength: 3,
});
const atRest: Waiting = { due: null, parked: null, deadline: null, claimed: null, attempts: 0, state: 'in_use' };

function isToBeWorkedAt(
  { due, parked, deadline, claimed, state: found }: Waiting,
  { states, portioned }: Polled,
): boolean {
  if ((portioned as readonly string[]).includes(found) && deadline === null) return true;
  return (
    (states as readonly string[]).includes(found) &&
    (parked === -1 || (claimed !== 1 && (due === -1 || deadline === -1)))
  );
}

async function insert(table: string, row: Waiting): Promise<void> {
  const at = (minute: number | null) => (minute === null ? 'NULL' : `clock_timestamp() + interval '${minute} minutes'`);
  await harbour.dataSource.query(
    `INSERT INTO ${table} (ship, state, due_at, parked_until, deadline_at, claimed_until, attempts)
     VALUES ('Fram', '${row.state}', ${at(row.due)}, ${at(row.parked)}, ${at(row.deadline)}, ${at(row.claimed)}, ${row.attempts})`,
  );
}

it('the tables named are those with a row in a known state that is due, parked until now, past its deadline or not begun, and that nobody works at', async () => {
  await fc.assert(
    fc.asyncProperty(rows, rows, async (...all) => {
      await harbour.dataSource.query('DELETE FROM berth; DELETE FROM pier');
      for (const [at, { table }] of tables.entries())
        for (const row of all[at] ?? []) await insert(table, row ?? atRest);
      const places = all.flatMap((each, at) =>
        each.some((row) => row && isToBeWorkedAt(row, tables[at]!)) ? [at] : [],
      );
      const { text, values } = dueSql(tables);
      expect(await harbour.dataSource.query(text, values)).toEqual(places.map((place) => ({ place })));
    }),
    runs(100),
  );
});

it('a worker is told of what others have made due for it, and only of that, and again after the database was away', async () => {
  const told: string[] = [];
  const poll = new DuePoll(harbour.dataSource, 5);
  poll.add(tables[0], () => told.push('berth'));
  poll.add(tables[1], () => told.push('pier'));
  await insert('pier', { ...atRest, due: -1 });
  await eventually(() => told.length > 1);
  expect(new Set(told)).toEqual(new Set(['pier']));

  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  await harbour.dataSource.query('ALTER TABLE pier RENAME TO away');
  await eventually(() => warn.mock.calls.length > 0);
  expect(warn.mock.calls[0]).toEqual([expect.stringMatching(/^Cannot look for due rows; retrying: .*pier/)]);
  await insert('berth', { ...atRest, due: -1 });
  await harbour.dataSource.query('ALTER TABLE away RENAME TO pier');
  await eventually(() => told.includes('berth'));

  await poll.drop(tables[1]);
  told.length = 0;
  await eventually(() => told.length > 1);
  expect(new Set(told)).toEqual(new Set(['berth']));
  await poll.drop(tables[0]);
});

it('of an outage of the database there is one warning a minute, however many looks fail', async () => {
  const told: unknown[] = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void told.push(line));
  let looks = 0;
  const away = jest.spyOn(Statements.prototype, 'query').mockImplementation(() => {
    looks += 1;
    return Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
  });
  const beganAtMs = performance.now();
  const poll = new DuePoll(harbour.dataSource, 1);
  poll.add(tables[0], () => undefined);
  await eventually(() => looks > 20);
  await poll.drop(tables[0]);
  away.mockRestore();
  expect(told[0]).toMatch(/^Cannot look for due rows; retrying: connect ECONNREFUSED/);
  expect(told.length).toBeLessThanOrEqual(Math.ceil((performance.now() - beganAtMs) / 60_000));
});
