import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { inBackground } from '@atoll/database';
import { eventually, Harbour } from './berth-fixture.js';

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

it('of 300 steps that need the database so many run at once that they wait for one another for short', async () => {
  let now = 0;
  let most = 0;
  harbour.machine.does.dredging = async () => {
    most = Math.max(most, (now += 1));
    for (let at = 0; at < 5; at += 1) await look();
    now -= 1;
    return { event: 'DREDGED' };
  };
  const all = Array.from({ length: 300 }, (_, at) => ({ values: { ship: `${at}`, piers: [`${at}`] }, cause: { actor: 'user:1' } }));
  await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  const worker = harbour.worker();
  worker.start();
  await harbour.eventuallyIn('in_use', 300);
  await worker.stop();
  expect(most).toBeLessThanOrEqual(128);
});

it('what else waits for connections keeps no step from beginning', async () => {
  harbour.machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
  let isOver = false;
  const others = Array.from({ length: 200 }, () =>
    inBackground(async () => {
      while (!isOver) await look();
    }),
  );
  const all = Array.from({ length: 30 }, (_, at) => ({ values: { ship: `${at}`, piers: [`${at}`] }, cause: { actor: 'user:1' } }));
  await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  const worker = harbour.worker();
  worker.start();
  await eventually(() => harbour.machine.begun.length >= 30);
  await worker.stop();
  isOver = true;
  await Promise.all(others);
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
  const done = harbour.worker({ stepMs: 4_000 }).doNext();
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
  await harbour.worker({ stepMs: 500 }).doNext();
  expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 1, lastError: { code: 'timeout' } });
});
