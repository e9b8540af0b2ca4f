import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { mostRowsRead, runs } from '@atoll/testing';
import fc from 'fast-check';
import { Harbour } from './berth-fixture.js';
import { Claims } from './claims.js';
import { claimAlikeSql, claimDueSql } from './claims-sql.js';
import { unparkSql } from './due-sql.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
  harbour.machine.owner = 'piers[1]';
});
beforeEach(() => harbour.dataSource.query('TRUNCATE berth'));
afterAll(() => harbour.close());

const unpark = () => new Claims(harbour.machine, harbour.dataSource, 3_600_000).unpark();

async function park(count: number, owner: string, lane: string, sinceMs: number): Promise<void> {
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, lane, piers, attempts, parked_until, deadline_at)
     SELECT n, 'dredging', $3, ARRAY[$2], 1, statement_timestamp() - ($4 + n) * interval '1 millisecond', statement_timestamp() + interval '1 hour' FROM generate_series(1, $1) n`,
    [count, owner, lane, sinceMs],
  );
}

/** How many rows of each owner in each lane are due. */
async function due(): Promise<Map<string, number>> {
  const rows = await harbour.dataSource.query<{ whose: string; count: number }[]>(
    `SELECT concat(piers[1], ' in ', lane) AS whose, count(*)::int FROM berth WHERE due_at IS NOT NULL GROUP BY 1`,
  );
  return new Map(rows.map(({ whose, count }) => [whose, count]));
}

it('law: of rows parked until now, a look makes those of each owner in each lane due before more of another, however many it has', async () => {
  const group = fc.record({
    owner: fc.constantFrom('crowd', 'b', 'c', 'd'),
    lane: fc.constantFrom('x', 'y'),
    count: fc.integer({ min: 1, max: 50 }),
    sinceMs: fc.constantFrom(0, 3_600_000),
  });
  const others = fc.uniqueArray(group, {
    selector: ({ owner, lane }) => `${owner} in ${lane}`,
    maxLength: 7,
  });
  await fc.assert(
    fc.asyncProperty(others, async (all) => {
      await harbour.dataSource.query('TRUNCATE berth');
      const beside = all.filter(({ owner, lane }) => owner !== 'crowd' || lane !== 'x');
      await park(3_000, 'crowd', 'x', 60_000);
      for (const { count, owner, lane, sinceMs } of beside) await park(count, owner, lane, sinceMs);
      await unpark();
      const made = await due();
      const few = beside.map(({ count, owner, lane }) => [`${owner} in ${lane}`, count] as const);
      const rest = few.reduce((left, [, count]) => left - count, 1_000);
      expect(made).toEqual(new Map([...few, ['crowd in x', rest]]));
    }),
    runs(20),
  );
});

it('what is parked until now is due after as many looks as there are thousands of it', async () => {
  await park(2_500, 'crowd', 'x', 60_000);
  const after: unknown[] = [];
  for (let looks = 0; looks < 4; looks += 1) {
    await unpark();
    after.push((await due()).get('crowd in x'));
  }
  expect(after).toEqual([1_000, 2_000, 2_500, 2_500]);
});

it('a row that a transaction has locked is skipped, and the next ones of its owner are made due', async () => {
  await park(3, 'b', 'x', 0);
  await harbour.transactions.run(async (manager) => {
    await manager.query(`SELECT FROM berth WHERE ship = '3' FOR UPDATE`);
    await unpark();
    expect(await due()).toEqual(new Map([['b in x', 2]]));
  });
});

it.each([false, true])(
  'of 5,000 rows that are due for the first time, 5,000 that have failed and 5,000 parked until now, few are read at a time (statistics: %s)',
  async (hasStatistics) => {
    await park(15_000, 'crowd', 'x', 0);
    await harbour.dataSource.query(
      `UPDATE berth SET due_at = parked_until, parked_until = NULL, attempts = berth_id % 3 WHERE berth_id % 3 < 2`,
    );
    if (hasStatistics) await harbour.dataSource.query('ANALYZE berth');
    const table = { table: 'berth', key: 'berth_id', owner: 'piers[1]' };
    const token = '00000000-0000-0000-0000-000000000000';
    const states = harbour.machine.states;
    const fixture = {
      query: <Row extends object>(text: string, values?: unknown[]) => harbour.dataSource.query<Row[]>(text, values),
    };
    const claiming = { token, claimMs: 4_000, limit: 500, byTheClock: [] };
    const of = { room: 4, loads: '{}', cursors: ['', '', '', ''], ahead: 3, spare: 250, states };
    const sent = [
      [unparkSql(table, states), 2_000],
      [claimDueSql(table, { ...claiming, ...of }), 4_000],
      [claimAlikeSql(table, { ...claiming, limit: 99, lane: 'x', state: 'dredging' }, 'fresh'), 2_000],
    ] as const;
    for (const [statement, most] of sent) expect(await mostRowsRead(fixture, statement)).toBeLessThanOrEqual(most);
  },
);
