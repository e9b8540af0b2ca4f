import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { BerthEntity, berths, cause, Harbour } from './berth-fixture.js';
import { beatSql } from './claim-keeper.js';
import { Claims } from './claims.js';
import { beginNowSql, beginSql } from './begin-sql.js';
import { claimAlikeSql, claimDueSql, claimOverdueSql } from './claims-sql.js';
import { dueSql, unparkSql } from './due-sql.js';
import type { MachineRow } from './machine-row.js';
import type { Statement } from './statement.js';
import { touchSql } from './touch-rows.js';

const states = [...berths.definition.states.keys()];
const berth = { table: 'berth', key: 'berth_id' };
const portioned = { ...berth, states, portioned: ['dredging'] };
const owned = { ...berth, owner: 'ship' };
const kept = { ...berth, keyType: 'bigint', keyOf: (row: MachineRow) => (row as BerthEntity).berthId };
const token = '00000000-0000-0000-0000-000000000000';
const keys = ['1', '2', '3'];
const claiming = { token, claimMs: 4_000, limit: 500, byTheClock: [] };
const due = {
  ...claiming,
  ...{ room: 4, loads: '{"7": [1, 3]}', cursors: ['', '', '', ''], ahead: 3, spare: 250, states },
};
const overdue = { ...claiming, limit: 50, givesBack: ['clearing'], hanging: [], states };
const alike = { ...claiming, limit: 99, lane: '7', state: 'dredging' };
const held = keys.map((berthId) => ({ row: Object.assign(new BerthEntity(), { berthId, claimToken: token }) }));
const statements: [name: string, statement: Statement][] = [
  ['claims what is due', claimDueSql(berth, due)],
  ['claims what is due, owner by owner', claimDueSql(owned, due)],
  ['claims what is overdue', claimOverdueSql(berth, overdue)],
  ['claims more of a lane', claimAlikeSql(berth, alike, 'fresh')],
  ['claims more of a lane, owner by owner', claimAlikeSql(owned, alike, 'fresh')],
  ['makes due what was parked', unparkSql(berth, states)],
  ['begins what waits', beginSql(berth, 'dredging', { portion: 500, deadlineMs: 60_000, limit: 100 })],
  ['begins what somebody waits for', beginNowSql(berth, 'dredging', { keys, deadlineMs: 60_000 })],
  ['says whether any is to be worked at', dueSql([portioned, portioned])],
  ['extends claims', beatSql(4_000, [[kept, held]])],
  ['touches rows', touchSql(berth, { keys, states: null })],
];

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
  // Idle ones, half of them parked for an hour, with a few in each of the places where work waits.
  for (let batch = 0; batch < 10; batch += 1) {
    await harbour.dataSource.query(
      `INSERT INTO berth (ship, state, lane, attempts, due_at, parked_until, deadline_at)
       SELECT 'Fram', CASE WHEN is_busy THEN 'dredging' ELSE 'in_use' END, n % 97, n % 3,
         CASE WHEN is_busy AND n % 2 = 0 THEN clock_timestamp() END, CASE WHEN n % 2 = 1 THEN clock_timestamp() + CASE WHEN is_busy THEN '0' ELSE interval '1 hour' END END,
         CASE WHEN is_busy THEN clock_timestamp() + (n % 7 - 1) * interval '1 hour' END
       FROM (SELECT n, n % 500 < 2 AS is_busy FROM generate_series(1, 10000) n) numbered`,
    );
  }
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, lane) SELECT 'Fram', 'dredging', n % 20 FROM generate_series(1, 2000) n`,
  );
});
afterAll(() => harbour.close());

/** As SQL: a number, a text, or a list of texts. */
function literal(value: unknown): string {
  if (value === null) return 'NULL';
  return `'${Array.isArray(value) ? `{${value.map((each) => JSON.stringify(each)).join(',')}}` : (value as string | number)}'`;
}

type PlanMode = 'force_generic_plan' | 'force_custom_plan';

/**
 * Under the plan that is kept for a prepared statement, or one for these values, with the rows that each node of it has
 * read.
 */
async function explain({ text, values }: Statement, mode: PlanMode): Promise<string> {
  const runner = harbour.dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query(`SET LOCAL plan_cache_mode = ${mode}`);
  await runner.query(`PREPARE looked_at AS ${text}`);
  const lines = (await runner.query(
    `EXPLAIN (ANALYZE, TIMING OFF) EXECUTE looked_at (${values.map(literal).join(', ')})`,
  )) as {
    'QUERY PLAN': string;
  }[];
  await runner.query('DEALLOCATE looked_at');
  await runner.rollbackTransaction();
  await runner.release();
  return lines.map((line) => line['QUERY PLAN']).join('\n');
}

it.each<[boolean, PlanMode]>([
  [false, 'force_generic_plan'],
  [false, 'force_custom_plan'],
  [true, 'force_generic_plan'],
  [true, 'force_custom_plan'],
])(
  'of 100,000 rows, of which few are to be worked at, no statement reads more than those (statistics: %s, %s)',
  async (hasStatistics, mode) => {
    if (hasStatistics) await harbour.dataSource.query('ANALYZE berth');
    for (const [name, statement] of statements) {
      const plan = await explain(statement, mode);
      expect([name, plan.match(/Seq Scan on berth.*/g)]).toEqual([name, null]);
      const read = [...plan.matchAll(/Scan .*berth.*rows=([\d.]+) loops=(\d+)/g)].map(
        ([, rows, loops]) => Number(rows) * Number(loops),
      );
      expect(read.length).toBeGreaterThan(0);
      read.push(...[...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) => Number(rows)));
      for (const rows of read) expect([name, rows]).toEqual([name, Math.min(rows, 1_000)]);
    }
  },
);

it('what is sent for each step is planned a few times, and not for each step', async () => {
  const { machine, dataSource, transactions } = harbour;
  await dataSource.query('ANALYZE berth');
  const claims = new Claims(machine, dataSource, 4_000);
  const planned = await transactions.run(async (manager) => {
    // The dearer it is to read a row, the more a plan for one seems to be worth.
    await manager.query('SET LOCAL random_page_cost = 40; SET LOCAL plan_cache_mode = auto');
    for (let step = 0; step < 20; step += 1) {
      const row = await machine.insert(manager, { ship: 'Fram' }, cause);
      await claims.held(manager, [row]);
      await machine.move(manager, row, 'DREDGED', cause);
    }
    return manager.query<{ sent: string; times: string }[]>(
      `SELECT substring(statement FROM 'is_overdue|moved AS') AS sent, custom_plans AS times FROM pg_prepared_statements
       WHERE statement ~ 'is_overdue|moved AS' ORDER BY sent`,
    );
  });
  expect(planned).toEqual([
    { sent: 'is_overdue', times: '5' },
    { sent: 'moved AS', times: '5' },
  ]);
});
