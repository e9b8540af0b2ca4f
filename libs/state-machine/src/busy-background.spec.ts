import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { inBackground } from '@atoll/database';
import { eventually, Harbour } from './berth-fixture.js';
import { MachineWorkers } from './machine-workers.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open({ backgroundPoolSize: 2 });
});
afterAll(() => harbour.close());

it('a step keeps its claim while other work in the background waits for the connections of that for longer than a claim holds', async () => {
  let finish: () => void = () => undefined;
  let isAborted = false;
  harbour.machine.does.dredging = (_berth, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => (isAborted = true));
      finish = () => resolve({ event: 'DREDGED' });
    });
  const workers = new MachineWorkers([harbour.machine], harbour.dataSource, harbour.transactions, {
    service: 'harbour',
    stepMs: 60_000,
  });
  workers.onApplicationBootstrap();
  try {
    await harbour.ask();
    await harbour.eventuallyBegun(1);
    // Three rounds of two connections, each of which takes 2.5 s.
    await inBackground(() =>
      Promise.all(Array.from({ length: 6 }, () => harbour.dataSource.query('SELECT pg_sleep(2.5)'))),
    );
    expect(isAborted).toBe(false);
    finish();
    await eventually(
      async () => (await harbour.dataSource.query<object[]>(`SELECT FROM berth WHERE state = 'in_use'`)).length === 1,
    );
    expect(harbour.machine.begun.filter((step) => step.startsWith('dredging'))).toHaveLength(1);
  } finally {
    await workers.beforeApplicationShutdown();
  }
});
