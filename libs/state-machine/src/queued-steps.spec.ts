import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { inBackground, QueueTime } from '@atoll/database';
import { timeoutFactor } from '@atoll/testing';
import { eventually, Harbour } from './berth-fixture.js';
import { Claims } from './claims.js';
import { Lanes } from './lanes.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open({ poolSize: 1, backgroundPoolSize: 1 });
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

const look = () => harbour.dataSource.query('SELECT 1');
/** Takes the one connection of background work until it is told to let go. */
async function hold(): Promise<() => Promise<void>> {
  let letGo = (): void => undefined;
  const released = new Promise<void>((resolve) => (letGo = resolve));
  let held: Promise<void> = Promise.resolve();
  await new Promise<void>((begun) => {
    held = inBackground(() =>
      harbour.transactions.run(async (manager) => {
        await manager.query('SET LOCAL idle_in_transaction_session_timeout = 0');
        begun();
        await released;
      }),
    );
  });
  return () => {
    letGo();
    return held;
  };
}

it('of 200 steps that need the database so many run at once that they wait for one another for short', async () => {
  let now = 0;
  let most = 0;
  harbour.machine.does.dredging = async () => {
    most = Math.max(most, (now += 1));
    for (let at = 0; at < 3; at += 1) await look();
    now -= 1;
    return { event: 'DREDGED' };
  };
  const all = Array.from({ length: 200 }, (_, at) => ({
    values: { ship: `${at}`, piers: [`${at}`] },
    cause: { actor: 'user:1' },
  }));
  await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  // A step that is cut off goes on to wait for its connection, beside those that begin in its place.
  const worker = harbour.worker({ stepMs: 3_600_000 });
  worker.start();
  await harbour.eventuallyIn('in_use', 200);
  await worker.stop();
  expect(most).toBeLessThanOrEqual(128);
});

it('what else waits for connections keeps no step from beginning', async () => {
  harbour.machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
  let isOver = false;
  const others = Array.from({ length: 150 }, () =>
    inBackground(async () => {
      while (!isOver) await look();
    }),
  );
  const all = Array.from({ length: 10 }, (_, at) => ({
    values: { ship: `${at}`, piers: [`${at}`] },
    cause: { actor: 'user:1' },
  }));
  await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  const worker = harbour.worker();
  worker.start();
  await eventually(() => harbour.machine.begun.length >= 10);
  await worker.stop();
  isOver = true;
  await Promise.all(others);
});

it('with each statement a step waits for one connection of each other machine, however many steps of those wait', async () => {
  let served = 0;
  let isOver = false;
  const others = Array.from({ length: 300 }, () =>
    inBackground(async () => {
      for (; !isOver; served += 1) await look();
    }, new QueueTime('other')),
  );
  let servedBeside = 0;
  harbour.machine.does.dredging = async () => {
    const before = served;
    for (let at = 0; at < 10; at += 1) await look();
    servedBeside = served - before;
    return { event: 'DREDGED' };
  };
  const id = await harbour.ask('Fram', 'a');
  await harbour.worker().doNext();
  isOver = true;
  await Promise.all(others);
  expect((await harbour.read(id)).state).toBe('in_use');
  expect(servedBeside).toBeLessThanOrEqual(40);
});

it('results that wait to be written count as steps that wait', async () => {
  const result = Promise.withResolvers<void>();
  harbour.machine.does.dredging = async () => {
    await result.promise;
    return { event: 'DREDGED' };
  };
  const all = Array.from({ length: 64 }, (_, at) => ({
    values: { ship: `${at}`, piers: [`${at}`] },
    cause: { actor: 'user:1' },
  }));
  await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  const worker = harbour.worker();
  worker.start();
  await harbour.eventuallyBegun(64);
  const spies = [
    jest.spyOn(Claims.prototype, 'make').mockResolvedValue([]),
    jest.spyOn(Claims.prototype, 'makeOverdue').mockResolvedValue([]),
    jest.spyOn(Claims.prototype, 'begin').mockResolvedValue(false),
    jest.spyOn(Claims.prototype, 'unpark').mockResolvedValue(),
  ];
  const letGo = await hold();
  result.resolve();
  const free = jest.spyOn(Lanes.prototype, 'free', 'get');
  await eventually(() => {
    worker.wake();
    return free.mock.results.length >= 20;
  });
  const left: unknown = free.mock.results.at(-1)?.value;
  await letGo();
  for (const spy of [...spies, free]) spy.mockRestore();
  await harbour.eventuallyIn('in_use', 64);
  await worker.stop();
  expect(left).toBe(0);
});

it('a step that was cut off while it waited for a connection counts as no try, and does not say that its lane hangs', async () => {
  let isCutOff = false;
  const letGo: (() => Promise<void>)[] = [];
  harbour.machine.does.dredging = async (_, { signal }) => {
    signal.addEventListener('abort', () => (isCutOff = true));
    letGo.push(await hold());
    await look();
    return { event: 'DREDGED' };
  };
  const id = await harbour.ask('Fram', 'a');
  const done = harbour.worker({ stepMs: 4_000 * timeoutFactor }).doNext();
  await eventually(() => isCutOff);
  await letGo[0]?.();
  await done;
  expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 0, lastError: null });
  harbour.machine.does = {};
  await harbour.pass(10);
  await harbour.worker().settle();
  expect((await harbour.read(id)).state).toBe('in_use');
});

it('a step that was cut off while its node did not answer counts as a try, however often it used the database', async () => {
  harbour.machine.does.dredging = async () => {
    await look();
    return new Promise(() => undefined);
  };
  const id = await harbour.ask('Fram', 'a');
  await harbour.worker({ stepMs: 500 * timeoutFactor }).doNext();
  expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 1, lastError: { code: 'timeout' } });
});
