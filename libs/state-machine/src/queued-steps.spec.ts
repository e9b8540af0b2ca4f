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
