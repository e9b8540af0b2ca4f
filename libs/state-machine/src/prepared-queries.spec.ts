import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { BerthMachine, berths, Harbour } from './berth-fixture.js';

/** What the steps and sweeps of a machine ask outside of transactions. */
class AskingMachine extends BerthMachine {
  ask<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.query<Row>(sql, values);
  }
}

let harbour: Harbour;
let machine: AskingMachine;
beforeAll(async () => {
  // One connection, so that what it has prepared can be read.
  harbour = await Harbour.open({ poolSize: 1 });
  machine = new AskingMachine(harbour.dataSource, berths);
});
afterAll(() => harbour.close());

it('what a step asks is prepared once a connection', async () => {
  for (let times = 0; times < 3; times += 1)
    expect(await machine.ask('SELECT 1 + $1::int AS sum', [2])).toEqual([{ sum: 3 }]);
  const kept = `SELECT (generic_plans + custom_plans)::int AS used FROM pg_prepared_statements WHERE starts_with(statement, 'SELECT 1 +')`;
  expect(await harbour.dataSource.query(kept)).toEqual([{ used: 3 }]);
});

it('what a step writes returns its rows, and nothing where it asks for none', async () => {
  await machine.ask('INSERT INTO berth (ship, state, entered_at) VALUES ($1, $2, clock_timestamp())', [
    'Vega',
    'in_use',
  ]);
  expect(await machine.ask('UPDATE berth SET ship = $1 WHERE ship = $2', ['Rigel', 'Vega'])).toEqual([]);
  expect(await machine.ask('UPDATE berth SET ship = $1 RETURNING ship', ['Deneb'])).toEqual([{ ship: 'Deneb' }]);
});
