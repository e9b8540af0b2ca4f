import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { BerthMachine, berths, Harbour, type BerthEvent, type BerthState } from './berth-fixture.js';
import type { MachineDefinition } from './definition.js';

/** As of a release in which a berth was not cleared when its ship had left. */
function before(definition: MachineDefinition<BerthState, BerthEvent>): MachineDefinition<BerthState, BerthEvent> {
  const states = new Map([...definition.states].filter(([state]) => state !== 'clearing'));
  return { ...definition, states, next: (state, event) => states.get(state)?.on.get(event) as BerthState | undefined };
}

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

function olderMachine(): BerthMachine {
  const older = new BerthMachine(harbour.dataSource, { ...berths, definition: before(berths.definition) });
  // As steps do for states that they do not know.
  older.does.clearing = () => Promise.resolve('rest');
  return older;
}

/** A berth in the state that the older release does not have. */
async function clearing(ship = 'Fram'): Promise<string> {
  const id = await harbour.ask(ship);
  await harbour.send(id, 'DREDGED');
  await harbour.send(id, 'LEAVE');
  return id;
}

it('a row in a state of a later release is ended by that release, whatever an older worker does before and beside it', async () => {
  const older = olderMachine();
  const olderWorker = harbour.worker({}, older);
  const ids = await Promise.all(Array.from({ length: 10 }, (_, at) => clearing(`ship ${at}`)));
  const own = await harbour.ask('Vega');
  await olderWorker.settle();
  expect((await harbour.read(own)).state).toBe('in_use');
  await Promise.all([olderWorker.settle(), harbour.worker().settle()]);
  expect(older.begun).toEqual(['dredging:Vega']);
  expect(await Promise.all(ids.map(async (id) => (await harbour.read(id)).state))).toEqual(ids.map(() => 'free'));
});

it.each([
  ['due', 'due_at = now()'],
  ['parked until now', `due_at = NULL, parked_until = now() - interval '1 second'`],
  ['past its deadline', `due_at = NULL, deadline_at = now() - interval '1 second'`],
  ['due after a failure', 'due_at = now(), attempts = 2'],
])('an older worker leaves such a row as it is, though it is %s', async (_, columns) => {
  const id = await clearing();
  await harbour.dataSource.query(`UPDATE berth SET ${columns}`);
  const left = await harbour.read(id);
  const older = harbour.worker({}, olderMachine());
  expect(await older.doNext()).toBe(false);
  expect(await harbour.read(id)).toEqual(left);
});

it('rows in such a state keep no others waiting, however many there are in their lane and however long they have been due', async () => {
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, lane, due_at) SELECT 'Fram', 'clearing', 'pier', now() - interval '1 hour' FROM generate_series(1, 10000)`,
  );
  await harbour.ask('Vega', 'pier');
  const older = olderMachine();
  await harbour.worker({}, older).doNext();
  expect(older.begun).toEqual(['dredging:Vega']);
});
