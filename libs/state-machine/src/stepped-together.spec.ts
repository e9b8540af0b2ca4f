import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { allowErrors, expectErrors } from '@atoll/testing';
import { eventually, Harbour, itsDeath } from './berth-fixture.js';
import { ClaimKeeper } from './claim-keeper.js';
import { StepFailed } from './step-failed.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
beforeEach(async () => {
  harbour.machine.steppedTogether = ['dredging'];
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

const ships = ['Fram', 'Vega', 'Belgica', 'Gjoa'];
const stateOf = async (id: string) => (await harbour.read(id)).state;
const ask = (all = ships) => Promise.all(all.map((ship) => harbour.ask(ship)));

it('rows of one lane and state are stepped together, each moved with its own line of history', async () => {
  const ids = await ask();
  const [other] = await ask(['Polarstern']);
  await harbour.dataSource.query(`UPDATE berth SET lane = 'another' WHERE berth_id = $1`, [other]);
  await harbour.worker().settle();
  expect(harbour.machine.together.map((each) => each.toSorted())).toEqual([ships.toSorted()]);
  for (const id of [...ids, other!]) {
    expect(await harbour.read(id)).toMatchObject({
      state: 'in_use',
      claimToken: null,
      claimedUntil: null,
      revision: 1,
    });
    expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'in_use']);
  }
});

it('of those together of which one fails, that one alone has failed', async () => {
  harbour.machine.does.dredging = ({ ship }) =>
    ship === 'Vega'
      ? Promise.reject(new StepFailed('silted', 'Too much silt.', true))
      : Promise.resolve({ event: 'DREDGED' });
  harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
  const ids = await ask();
  await harbour.worker().settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'filling', 'in_use', 'in_use']);
  expect((await harbour.history(ids[1]!)).at(-1)).toMatchObject({ event: 'FAILED', reason: 'Too much silt.' });
});

it('one whose result cannot be applied holds up none of the others', async () => {
  expectErrors(/Cannot apply the result of a step of berth in dredging; it will run again: the database refuses Vega/);
  harbour.machine.onEntered = ({ ship }) =>
    ship === 'Vega' ? Promise.reject(new Error('the database refuses Vega')) : Promise.resolve();
  const ids = await ask();
  const worker = harbour.worker();
  await worker.doNext();
  expect(harbour.machine.together).toHaveLength(1);
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'dredging', 'in_use', 'in_use']);
});

it('one whose deadline comes while another of its batch has its step by itself gets none any more', async () => {
  harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
  harbour.machine.does.dredging = async ({ ship }) => {
    const isAlone = harbour.machine.begun.filter((each) => each === `dredging:${ship}`).length > 1;
    if (!isAlone && ship === 'Gjoa') throw new Error('not together');
    // Longer than any of them has left.
    if (isAlone && ship === 'Fram') jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 3_600_000);
    return { event: 'DREDGED' };
  };
  expectErrors(/A step of berth in dredging failed: not together/);
  const ids: string[] = [];
  for (const ship of ships) ids.push(await harbour.ask(ship));
  await harbour.worker().settle();
  jest.restoreAllMocks();
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'filling', 'filling', 'filling']);
  expect(harbour.machine.begun.filter((each) => each === 'dredging:Vega')).toHaveLength(1);
});

it('one past its deadline is given up without a step; the others go on', async () => {
  harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
  const ids = await ask();
  await harbour.dataSource.query(
    `UPDATE berth SET deadline_at = clock_timestamp() - interval '1 second' WHERE berth_id = $1`,
    [ids[1]],
  );
  await harbour.worker().settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'filling', 'in_use', 'in_use']);
  expect(harbour.machine.begun).not.toContain('dredging:Vega');
});

it('one whose deadline passes when another of them is already claimed is given up without a step; the others go on', async () => {
  harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
  const ids = await ask();
  await harbour.dataSource.query(`UPDATE berth SET due_at = due_at - interval '1 minute' WHERE ship = 'Fram'`);
  await harbour.dataSource.query(
    `CREATE FUNCTION expire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       UPDATE berth SET deadline_at = clock_timestamp() - interval '1 second' WHERE ship = 'Vega'; RETURN NULL;
     END $$;
     CREATE TRIGGER expire AFTER UPDATE OF claim_token ON berth FOR EACH ROW
       WHEN (NEW.ship = 'Fram' AND OLD.claim_token IS NULL) EXECUTE FUNCTION expire()`,
  );
  await harbour.worker().doNext();
  await harbour.dataSource.query('DROP FUNCTION expire CASCADE');
  expect(harbour.machine.begun.toSorted()).toEqual(['dredging:Belgica', 'dredging:Fram', 'dredging:Gjoa']);
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'filling', 'in_use', 'in_use']);
});

it('one that has failed before is tried by itself', async () => {
  const ids = await ask();
  await harbour.dataSource.query('UPDATE berth SET attempts = 1 WHERE berth_id = $1', [ids[2]]);
  await harbour.worker().settle();
  expect(harbour.machine.together.flat()).not.toContain('Belgica');
  expect(await Promise.all(ids.map(stateOf))).toEqual(ships.map(() => 'in_use'));
});

it('where there is no answer in time, each has had a try', async () => {
  harbour.machine.does.dredging = () => new Promise(() => undefined);
  const ids = await ask();
  await harbour.worker({ stepMs: 50 }).settle();
  for (const id of ids)
    expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 1, lastError: { code: 'timeout' } });
  expect(harbour.machine.together).toHaveLength(1);
});

it('one that is moved meanwhile is left to that; the others go on', async () => {
  let isWaiting = true;
  harbour.machine.does.dredging = async (_, { signal }) => {
    if (isWaiting)
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    return { event: 'DREDGED' };
  };
  const ids = await ask();
  // A beat of the keeper tells the step.
  const working = harbour.worker({}, harbour.machine, new ClaimKeeper(harbour.dataSource)).settle();
  await eventually(() => harbour.machine.together.length > 0);
  await harbour.send(ids[1]!, 'CANCEL');
  isWaiting = false;
  await working;
  await harbour.worker().settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(['in_use', 'free', 'in_use', 'in_use']);
});

it('two workers do each of many once', async () => {
  const ids = await ask(Array.from({ length: 230 }, (_, at) => `ship ${at}`));
  await Promise.all([harbour.worker().settle(), harbour.worker().settle()]);
  expect(harbour.machine.begun.length).toBe(ids.length);
  expect(new Set(harbour.machine.together.map(({ length }) => length <= 100))).toEqual(new Set([true]));
  const moved = await harbour.dataSource.query<object[]>(`SELECT FROM machine_history WHERE event = 'DREDGED'`);
  expect(moved).toHaveLength(ids.length);
});

it('a process that dies in the middle leaves all of them to the next', async () => {
  const ids = await ask();
  allowErrors(itsDeath);
  await harbour.dyingWorker().settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(ships.map(() => 'dredging'));
  await harbour.pass(60);
  await harbour.dataSource.query(`UPDATE berth SET deadline_at = clock_timestamp() + interval '1 minute'`);
  await harbour.worker().settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(ships.map(() => 'in_use'));
});
