import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { expectErrors } from '@atoll/testing';
import fc from 'fast-check';
import { BerthEntity, BerthMachine, berths, eventually, Harbour } from './berth-fixture.js';
import { stepTimeoutMs } from './run-step.js';
import { StepFailed } from './step-failed.js';

let harbour: Harbour;
beforeEach(async () => {
  harbour = await Harbour.open();
});
afterEach(() => harbour.close());

const refused = (isPermanent = false) => Promise.reject(new StepFailed('silted', 'There is too much silt.', isPermanent));
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
      expect(berth).toMatchObject({ state: 'dredging', attempts, lastError: { code: 'silted', message: 'There is too much silt.' } });
      expect(berth.dueAt).toBeNull();
      expect(berth.parkedUntil?.getTime()).toBeGreaterThan(berth.enteredAt.getTime());
      await harbour.pass(1);
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

describe('a deadline', () => {
  it('counts from the entry, whatever was tried meanwhile, and says what was last wrong', async () => {
    harbour.machine.does.dredging = () => refused();
    const id = await harbour.ask();
    await harbour.worker().settle();
    await harbour.pass(61);
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    await harbour.worker().settle();
    const { state, lastError } = await harbour.read(id);
    expect([state, lastError?.code, lastError?.message]).toEqual(['filling', 'silted', 'It was not done in time. There is too much silt.']);
  });

  it('ends even what a frozen worker has claimed, once its claim has run out; what that one answers later is discarded', async () => {
    let answer: (outcome: { event: 'DREDGED' }) => void = () => undefined;
    harbour.machine.does.dredging = () => new Promise((resolve) => (answer = resolve));
    const id = await harbour.ask();
    const frozen = harbour.worker().settle();
    await eventually(() => harbour.machine.begun.length === 1);
    await harbour.dataSource.query(
      `UPDATE berth SET deadline_at = deadline_at - interval '1 hour', claimed_until = claimed_until - interval '1 hour'`,
    );
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('free');
    answer({ event: 'DREDGED' });
    await frozen;
    expect(await stateOf(id)).toBe('free');
    expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'filling', 'free']);
  });
});

describe('a step runs until its deadline', () => {
  const leave = (id: string, milliseconds: number) =>
    harbour.dataSource.query(`UPDATE berth SET deadline_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE berth_id = $1`, [
      id,
      milliseconds,
    ]);

  it.each([15_000, 10_000, 5_000, 1_000])('and is done with %i ms left', async (milliseconds) => {
    const id = await harbour.ask();
    await leave(id, milliseconds);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('in_use');
  });

  it('and is aborted there if it takes longer: a state whose deadline is shorter than a step ends by it', async () => {
    let aborted: Promise<void> = Promise.resolve();
    harbour.machine.does.dredging = (_, { signal }) => {
      aborted = new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
      return new Promise(() => undefined);
    };
    const id = await harbour.ask();
    await leave(id, 200);
    await harbour.worker().settle();
    await aborted;
    expect(await stateOf(id)).toBe('free');
    expect((await harbour.history(id)).map(({ event }) => event)).toEqual([null, 'FAILED', 'UNDONE']);
  });

  it('law: it may take a whole number of milliseconds, never less than is left and never more than a step', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, minExcluded: true, noNaN: true }), fc.integer({ min: 1, max: 60_000 }), (leftMs, stepMs) => {
        const timeoutMs = stepTimeoutMs(leftMs, stepMs);
        expect(() => AbortSignal.timeout(timeoutMs)).not.toThrow();
        expect(timeoutMs).toBeGreaterThanOrEqual(Math.min(leftMs, stepMs));
        expect(timeoutMs).toBeLessThanOrEqual(stepMs);
        expect(timeoutMs).toBeLessThanOrEqual(leftMs + 1);
      }),
    );
    expect([stepTimeoutMs(1, 10_000), stepTimeoutMs(0.001, 10_000), stepTimeoutMs(Infinity, 10_000)]).toEqual([1, 1, 10_000]);
    expect([stepTimeoutMs(0, 10_000), stepTimeoutMs(-1, 10_000)]).toEqual([10_000, 10_000]);
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
    for (const id of ids) expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'in_use']);
  });

  it('take over what one of them died with, once its claim has run out and not before', async () => {
    const id = await harbour.ask();
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

it('what is to be given back is tried once where nobody was there before its deadline, and given up then', async () => {
  const id = await harbour.ask();
  await harbour.worker().settle();
  await harbour.send(id, 'LEAVE');
  await harbour.pass(61);
  await harbour.worker().settle();
  expect(await stateOf(id)).toBe('free');
  const other = await harbour.ask();
  await harbour.worker().settle();
  await harbour.send(other, 'LEAVE');
  await harbour.pass(61);
  harbour.machine.does.clearing = () => refused();
  await harbour.worker().settle();
  expect(await stateOf(other)).toBe('lost');
});

it('what is touched while its step is under way is looked at again', async () => {
  let answer: (outcome: 'rest') => void = () => undefined;
  const id = await harbour.ask();
  harbour.machine.does.in_use = () => new Promise((resolve) => (answer = resolve));
  await harbour.worker().settle();
  const touch = () => harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  await touch();
  const looking = harbour.worker().settle();
  await eventually(() => harbour.machine.begun.includes('in_use:Kon-Tiki'));
  await touch();
  answer('rest');
  await eventually(() => harbour.machine.begun.filter((step) => step.startsWith('in_use')).length === 2);
  answer('rest');
  await looking;
  expect((await harbour.read(id)).dueAt).toBeNull();
});

it('an event that changes nothing leaves neither a trace nor a deadline behind', async () => {
  const id = await harbour.ask();
  await harbour.worker().settle();
  expect(await harbour.send(id, 'DREDGED')).toBeUndefined();
  expect(await harbour.send(id, 'CLEARED')).toBeUndefined();
  expect((await harbour.history(id)).length).toBe(2);
  expect((await harbour.read(id)).deadlineAt).toBeNull();
});

it('a shutdown interrupts steps, and others go on at once', async () => {
  harbour.machine.does.dredging = (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject));
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
