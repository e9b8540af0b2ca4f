import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Transactions } from '@atoll/database';
import { allStatementsDuring } from '@atoll/testing';
import { BerthMachine, berths, eventually, Harbour } from './berth-fixture.js';
import { ClaimKeeper } from './claim-keeper.js';
import { MachineWorker } from './machine-worker.js';

let harbour: Harbour;
let worker: Pick<MachineWorker<never, never, never>, 'stop'>;
let open: () => void = () => undefined;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterEach(async () => {
  open();
  await worker.stop();
  await harbour.clear();
});
afterAll(() => harbour.close());

const options = { service: 'harbour', pollMs: 10, sweepMs: 10 };

/** Counts the looks of a worker, each of which sweeps. */
class Looked extends BerthMachine {
  looks = 0;
  override sweep(): Promise<string[]> {
    this.looks += 1;
    return Promise.resolve([]);
  }
  /** That begin from now on. */
  async some(): Promise<void> {
    const wanted = this.looks + 3;
    await eventually(() => this.looks >= wanted);
  }
}

it('a worker whose steps all run asks for no more that is due', async () => {
  const machine = new Looked(harbour.dataSource, berths);
  machine.does.dredging = () => new Promise(() => undefined);
  const full = harbour.worker({ ...options, concurrency: 1 }, machine);
  worker = full;
  full.start();
  await harbour.ask('Kon-Tiki', 'one');
  await eventually(() => machine.begun.length === 1);
  await harbour.ask('Fram', 'two');
  const sent = await allStatementsDuring(() => machine.some());
  expect(sent.filter(({ text }) => text.startsWith('WITH RECURSIVE'))).toEqual([]);
  expect(machine.begun).toHaveLength(1);
});

it('of many that are past their deadline a worker gives up fifty at once, and so many more as are done', async () => {
  const machine = new Looked(harbour.dataSource, berths);
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, deadline_at) SELECT 'ship ' || n, 'dredging', now() - interval '1 hour' FROM generate_series(1, 140) n`,
  );
  const gate = new Promise<void>((resolve) => (open = resolve));
  let applied = 0;
  const transactions = {
    run: async (work: Parameters<Transactions['run']>[0]) => {
      applied += 1;
      if (applied > 20) await gate;
      return harbour.transactions.run(work);
    },
  } as unknown as Transactions;
  const keeper = new ClaimKeeper(harbour.dataSource, 3_600_000);
  const giving = new MachineWorker(machine, harbour.dataSource, transactions, options, keeper);
  worker = giving;
  giving.start();
  await harbour.eventuallyIn('dredging', 120);
  const held = async () =>
    (await harbour.dataSource.query<object[]>(`SELECT FROM berth WHERE claim_token IS NOT NULL AND state = 'dredging'`))
      .length;
  await machine.some();
  await eventually(async () => (await held()) >= 50);
  await machine.some();
  expect(await held()).toBe(50);
  open();
  await harbour.eventuallyIn('dredging', 0);
});
