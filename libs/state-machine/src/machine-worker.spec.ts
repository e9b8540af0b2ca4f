import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { allowErrors, expectErrors } from '@atoll/testing';
import { BerthEntity, BerthMachine, berths, eventually, Harbour, itsDeath } from './berth-fixture.js';
import { StepFailed } from './step-failed.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

const refused = (isPermanent = false) =>
  Promise.reject(new StepFailed('silted', 'There is too much silt.', isPermanent));
const stateOf = async (id: string) => (await harbour.read(id)).state;

describe('a step that fails', () => {
  it('is tried again after a while, its typed error kept and shown, and given up after its tries', async () => {
    harbour.machine.does.dredging = () => refused();
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    const id = await harbour.ask();
    const worker = harbour.worker();
    for (const attempts of [1, 2]) {
      await worker.settle();
      const berth = await harbour.read(id);
      expect(berth).toMatchObject({
        state: 'dredging',
        attempts,
        lastError: { code: 'silted', message: 'There is too much silt.' },
      });
      expect(berth.dueAt).toBeNull();
      expect(berth.parkedUntil?.getTime()).toBeGreaterThan(berth.enteredAt.getTime());
      await harbour.pass(10);
    }
    await worker.settle();
    expect(await harbour.read(id)).toMatchObject({ state: 'filling', attempts: 0, lastError: { code: 'silted' } });
    expect((await harbour.history(id)).at(-1)).toMatchObject({
      event: 'FAILED',
      actor: 'system:harbour',
      reason: 'There is too much silt.',
    });
  });

  it('for good is given up at once, and undone', async () => {
    harbour.machine.does.dredging = () => refused(true);
    const id = await harbour.ask();
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('free');
    expect(harbour.machine.enteredStates).toEqual(['dredging>filling', 'filling>free']);
  });

  it('with an error nobody thought of counts as a try, and shows nothing of it', async () => {
    expectErrors(/A step of berth in dredging failed/);
    harbour.machine.does.dredging = () => Promise.reject(new Error('password=hunter2'));
    const id = await harbour.ask();
    await harbour.worker().settle();
    expect((await harbour.read(id)).lastError).toMatchObject({ code: 'internal', message: 'An internal error.' });
  });
});

describe('a step that an outage of the database ends', () => {
  /** A connection that the server ends, as a failing server does. */
  const cutOff = () =>
    harbour.dataSource
      .query('SELECT pg_terminate_backend(pg_backend_pid())')
      .then(() => ({ event: 'DREDGED' as const }));
  const overdue = (id: string) =>
    harbour.dataSource.query(`UPDATE berth SET deadline_at = now() - interval '1 s' WHERE berth_id = $1`, [id]);
  const warnings = () => jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const cutShort = ({ mock }: { mock: { calls: unknown[][] } }) =>
    mock.calls.filter(([line]) => /were interrupted/.test(String(line)));
  afterEach(() => void jest.restoreAllMocks());

  it.each([false, true])(
    'counts as no try, is a warning once a minute for all rows, and is run again (together: %s)',
    async (isTogether) => {
      const told = warnings();
      if (isTogether) harbour.machine.steppedTogether = ['dredging'];
      let cuts = 0;
      harbour.machine.does.dredging = () => {
        cuts += 1;
        return cutOff();
      };
      const ids = [];
      for (let at = 0; at < 6; at += 1) ids.push(await harbour.ask(`ship-${at}`));
      // However long the machine takes for all of them.
      await harbour.dataSource.query(`UPDATE berth SET deadline_at = now() + interval '1 day'`);
      const worker = harbour.worker();
      const beganAtMs = performance.now();
      while (cuts < 18) if (!(await worker.doNext())) await harbour.pass(10);
      const minutes = Math.ceil((performance.now() - beganAtMs) / 60_000);
      for (const id of ids)
        expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 0, lastError: null });
      expect(cutShort(told).length).toBeGreaterThan(0);
      expect(cutShort(told).length).toBeLessThanOrEqual(minutes);
      delete harbour.machine.does.dredging;
      await eventually(async () => {
        await harbour.pass(10);
        await worker.settle();
        return (await harbour.dataSource.manager.countBy(BerthEntity, { state: 'in_use' })) === ids.length;
      });
    },
  );

  it('is an error where its state is given up for it', async () => {
    warnings();
    expectErrors(
      /A step of berth in dredging failed for good: A service or database that the step needs is unavailable/,
    );
    harbour.machine.does.dredging = ({ berthId }) => overdue(berthId).then(cutOff);
    const id = await harbour.ask();
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('free');
  });

  it('of a state that gives something back is run again, also after its deadline', async () => {
    warnings();
    let cuts = 0;
    harbour.machine.does.clearing = async ({ berthId }) => {
      await overdue(berthId);
      cuts += 1;
      return cuts < 4 ? cutOff().then(() => ({ event: 'CLEARED' })) : { event: 'CLEARED' };
    };
    const id = await harbour.ask();
    const worker = harbour.worker();
    await worker.settle();
    await harbour.send(id, 'LEAVE');
    for (let round = 0; round < 4; round += 1) {
      await worker.settle();
      await harbour.pass(10);
    }
    expect([cuts, await stateOf(id)]).toEqual([4, 'free']);
  });
});

describe('workers against each other', () => {
  it('do each step once and each transition once', async () => {
    const other = new BerthMachine(harbour.dataSource, berths);
    const ids = await Promise.all(Array.from({ length: 40 }, (_, at) => harbour.ask(`ship-${at}`)));
    const workers = [harbour.worker(), harbour.worker({}, other)];
    for (const worker of workers) worker.start();
    await eventually(async () => (await harbour.dataSource.manager.countBy(BerthEntity, { state: 'in_use' })) === 40);
    await Promise.all(workers.map((worker) => worker.stop()));
    const begun = [...harbour.machine.begun, ...other.begun];
    expect(new Set(begun).size).toBe(begun.length);
    for (const id of ids)
      expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'in_use']);
  });

  it('take over what one of them died with, once its claim has run out and not before', async () => {
    const id = await harbour.ask();
    allowErrors(itsDeath);
    await harbour.dyingWorker().settle();
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('dredging');
    await harbour.pass(20);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('in_use');
  });

  it('leave a row to whoever moved it meanwhile', async () => {
    let answer: (outcome: { event: 'DREDGED' }) => void = () => undefined;
    harbour.machine.does.dredging = () => new Promise((resolve) => (answer = resolve));
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    const id = await harbour.ask();
    const slow = harbour.worker().settle();
    await eventually(() => harbour.machine.begun.length === 1);
    await harbour.send(id, 'CANCEL');
    answer({ event: 'DREDGED' });
    await slow;
    expect(await stateOf(id)).toBe('filling');
  });
});

it('the next step waits for one under way that somebody has overtaken, and begins at once when that has ended', async () => {
  let answer: (outcome: { event: 'DREDGED' }) => void = () => undefined;
  harbour.machine.does.dredging = () => new Promise((resolve) => (answer = resolve));
  const id = await harbour.ask();
  const slow = harbour.worker().settle();
  await eventually(() => harbour.machine.begun.length === 1);
  await harbour.send(id, 'CANCEL');
  await harbour.worker().settle();
  expect(harbour.machine.begun).toEqual(['dredging:Kon-Tiki']);
  answer({ event: 'DREDGED' });
  await slow;
  await harbour.worker().settle();
  expect([await stateOf(id), harbour.machine.begun]).toEqual(['free', ['dredging:Kon-Tiki', 'filling:Kon-Tiki']]);
});

it('a transient state cannot be left to rest: that is an error, and the step is run again', async () => {
  expectErrors(/A row in dredging cannot be left to rest/);
  harbour.machine.does.dredging = () => Promise.resolve('rest');
  const id = await harbour.ask();
  await harbour.worker().doNext();
  expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 0 });
});

it('a result that cannot be applied because the database is away is no error: the step is run again', async () => {
  let isAway = true;
  harbour.machine.onEntered = () =>
    isAway ? Promise.reject(new AppError('unavailable', 'The database is away.')) : Promise.resolve();
  const id = await harbour.ask();
  await harbour.worker().doNext();
  expect((await harbour.read(id)).state).toBe('dredging');
  isAway = false;
  await harbour.dataSource.query('UPDATE berth SET claimed_until = clock_timestamp()');
  await harbour.worker().settle();
  expect((await harbour.read(id)).state).toBe('in_use');
  expect(harbour.machine.begun).toHaveLength(2);
});

it('an event that changes nothing leaves neither a trace nor a deadline behind', async () => {
  const id = await harbour.ask();
  await harbour.worker().settle();
  expect(await harbour.send(id, 'DREDGED')).toBeUndefined();
  expect(await harbour.send(id, 'CLEARED')).toBeUndefined();
  expect((await harbour.history(id)).length).toBe(2);
  expect((await harbour.read(id)).deadlineAt).toBeNull();
});

it('a step that asks to be run again after a while is, without a poll', async () => {
  harbour.machine.does.dredging = () =>
    Promise.resolve(harbour.machine.begun.length === 1 ? { againAfterMs: 30 } : { event: 'DREDGED' });
  await harbour.ask();
  const worker = harbour.worker({ pollMs: 3_600_000, sweepMs: 3_600_000 });
  worker.start();
  try {
    await harbour.eventuallyIn('in_use', 1);
  } finally {
    await worker.stop();
  }
});

it('a shutdown interrupts steps, and others go on at once', async () => {
  harbour.machine.does.dredging = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', reject));
  const id = await harbour.ask();
  const worker = harbour.worker();
  worker.start();
  await eventually(() => harbour.machine.begun.length === 1);
  await worker.stop();
  harbour.machine.does = {};
  expect(await harbour.read(id)).toMatchObject({ claimToken: null, attempts: 0 });
  await harbour.worker().settle();
  expect(await stateOf(id)).toBe('in_use');
});

it('no step begins once a shutdown has begun', async () => {
  const ids = [await harbour.ask(), await harbour.ask()];
  const worker = harbour.worker();
  await worker.stop();
  expect(await worker.doNext()).toBe(true);
  expect([harbour.machine.begun, (await harbour.read(ids[0] ?? '')).claimToken]).toEqual([[], null]);
});

it('a commit wakes the worker of its own process', async () => {
  const worker = harbour.worker({ pollMs: 3_600_000 });
  worker.start();
  const id = await harbour.ask();
  harbour.machine.onDue(() => worker.wake());
  await harbour.ask('Ra II');
  await eventually(async () => (await stateOf(id)) === 'in_use');
  await worker.stop();
});
