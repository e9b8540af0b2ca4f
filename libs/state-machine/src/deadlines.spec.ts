import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import fc from 'fast-check';
import { eventually, Harbour } from './berth-fixture.js';
import { stepTimeoutMs } from './run-step.js';
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

describe('a deadline', () => {
  it('counts from the entry, whatever was tried meanwhile, and says what was last wrong', async () => {
    harbour.machine.does.dredging = () => refused();
    const id = await harbour.ask();
    await harbour.worker().settle();
    await harbour.pass(61);
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    await harbour.worker().settle();
    const { state, lastError } = await harbour.read(id);
    expect([state, lastError?.code, lastError?.message]).toEqual([
      'filling',
      'silted',
      'Deadline exceeded: There is too much silt.',
    ]);
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
    harbour.dataSource.query(
      `UPDATE berth SET deadline_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE berth_id = $1`,
      [id, milliseconds],
    );

  it.each([15_000, 10_000, 5_000, 3_000].map((milliseconds) => milliseconds * timeoutFactor))(
    'and is done with %i ms left',
    async (milliseconds) => {
      const id = await harbour.ask();
      await leave(id, milliseconds);
      await harbour.worker().settle();
      expect(await stateOf(id)).toBe('in_use');
    },
  );

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
      fc.property(
        fc.double({ min: 0, minExcluded: true, noNaN: true }),
        fc.integer({ min: 1, max: 60_000 }),
        (leftMs, stepMs) => {
          const timeoutMs = stepTimeoutMs(leftMs, stepMs);
          expect(() => AbortSignal.timeout(timeoutMs)).not.toThrow();
          expect(timeoutMs).toBeGreaterThanOrEqual(Math.min(leftMs, stepMs));
          expect(timeoutMs).toBeLessThanOrEqual(stepMs);
          expect(timeoutMs).toBeLessThanOrEqual(leftMs + 1);
        },
      ),
    );
    expect([stepTimeoutMs(1, 10_000), stepTimeoutMs(0.001, 10_000), stepTimeoutMs(Infinity, 10_000)]).toEqual([
      1, 1, 10_000,
    ]);
    expect([stepTimeoutMs(0, 10_000), stepTimeoutMs(-1, 10_000)]).toEqual([10_000, 10_000]);
  });
});

describe('what nobody came to before its deadline', () => {
  const leftMs = async (id: string) => {
    const { deadlineAt, dueAt, parkedUntil } = await harbour.read(id);
    return Number(deadlineAt) - Number(dueAt ?? parkedUntil);
  };

  it('is tried all the same, as if its clock had stood still', async () => {
    const id = await harbour.ask();
    await harbour.pass(600);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('in_use');
  });

  it('has one half of the time that it had left when it became due, and then fails of what was wrong', async () => {
    harbour.machine.does.dredging = () => refused();
    const id = await harbour.ask();
    await harbour.pass(600);
    await harbour.dataSource.query(`UPDATE berth SET deadline_at = due_at + interval '60 seconds'`);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('dredging');
    // Less the wait until the next try.
    expect(await leftMs(id)).toBeGreaterThan(15_000);
    expect(await leftMs(id)).toBeLessThanOrEqual(30_000);
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    await harbour.pass(31);
    await harbour.worker().settle();
    const { state, lastError } = await harbour.read(id);
    expect([state, lastError?.message]).toEqual(['filling', 'Deadline exceeded: There is too much silt.']);
  });

  it.each(['parked', 'claimed by a worker that died'])('is tried all the same where it was %s before', async (how) => {
    harbour.machine.does.dredging = () => Promise.resolve({ againAfterMs: 10_000 });
    const id = await harbour.ask();
    if (how === 'parked') await harbour.worker().settle();
    else
      await harbour.dataSource.query(
        `UPDATE berth SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp()`,
      );
    harbour.machine.does = {};
    await harbour.pass(61);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('in_use');
  });

  it('is given up after a few such turns', async () => {
    harbour.machine.does.dredging = () => Promise.resolve({ againAfterMs: 100 });
    const id = await harbour.ask();
    for (let turns = 0; turns < 7; turns += 1) {
      await harbour.pass(61);
      await harbour.worker().settle();
    }
    expect(await stateOf(id)).toBe('free');
    expect(harbour.machine.begun.filter((step) => step.startsWith('dredging'))).not.toHaveLength(0);
  });

  it('is given up where it waited for nothing', async () => {
    const id = await harbour.ask();
    await harbour.dataSource.query(`UPDATE berth SET due_at = NULL, deadline_at = clock_timestamp()`);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('free');
  });

  it('is given up where a try had failed', async () => {
    harbour.machine.does.dredging = () => refused();
    const id = await harbour.ask();
    await harbour.worker().settle();
    await harbour.pass(61);
    await harbour.worker().settle();
    expect(await stateOf(id)).toBe('free');
    expect(harbour.machine.begun).toEqual(['dredging:Kon-Tiki', 'filling:Kon-Tiki']);
  });
});

it('what is to be given back is tried where nobody was there before its deadline, and given up when that did not help', async () => {
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
  await harbour.pass(31);
  await harbour.worker().settle();
  expect(await stateOf(other)).toBe('lost');
});

it.each([
  ['dredging', ['free', 'free', 'in_use']],
  ['clearing', ['lost', 'lost', 'free']],
] as const)('nothing is tried late, as by %s, where it is known that its lane hangs', async (state, ends) => {
  const ids = [await harbour.ask('Fram', 'a'), await harbour.ask('Vega', 'a'), await harbour.ask('Ra', 'b')];
  const worker = harbour.worker({ stepMs: 20 });
  if (state === 'clearing') await worker.settle();
  for (const id of ids) await harbour.send(id, 'LEAVE');
  harbour.machine.does[state] = () => new Promise(() => undefined);
  expect(await worker.doNext()).toBe(true);
  await harbour.pass(61);
  harbour.machine.begun.length = 0;
  harbour.machine.does = {};
  await worker.settle();
  expect(await Promise.all(ids.map(stateOf))).toEqual(ends);
  expect(harbour.machine.begun.filter((step) => step.startsWith(state))).toEqual([`${state}:Ra`]);
});

it('what is to be given back, and asked to be looked at after its deadline, is tried at its deadline', async () => {
  harbour.machine.does.clearing = () => Promise.resolve({ againAfterMs: 3_600_000 });
  const id = await harbour.ask();
  await harbour.worker().settle();
  await harbour.send(id, 'LEAVE');
  await harbour.worker().settle();
  expect((await harbour.read(id)).parkedUntil).toEqual((await harbour.read(id)).deadlineAt);
  harbour.machine.does = {};
  await harbour.pass(61);
  await harbour.worker().settle();
  expect(await stateOf(id)).toBe('free');
});
