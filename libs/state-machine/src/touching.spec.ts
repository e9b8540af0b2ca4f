import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { eventually, Harbour } from './berth-fixture.js';
import { StepFailed } from './step-failed.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

const refused = (isPermanent = false) =>
  Promise.reject(new StepFailed('silted', 'There is too much silt.', isPermanent));

it('what was parked is so no more once an event has moved it', async () => {
  harbour.machine.does.dredging = () => refused();
  const id = await harbour.ask();
  await harbour.worker().settle();
  expect((await harbour.read(id)).parkedUntil).not.toBeNull();
  await harbour.send(id, 'CANCEL');
  expect(await harbour.read(id)).toMatchObject({ state: 'filling', parkedUntil: null, attempts: 0 });
});

it('what is parked is left alone until then, and a touch ends that', async () => {
  const id = await harbour.ask();
  await harbour.worker().settle();
  harbour.machine.begun.length = 0;
  await harbour.transactions.run(async (manager) => harbour.machine.park(manager, await harbour.read(id), 60_000));
  await harbour.worker().settle();
  expect(harbour.machine.begun).toEqual([]);
  await harbour.pass(61);
  await harbour.worker().settle();
  await harbour.transactions.run(async (manager) => harbour.machine.park(manager, await harbour.read(id), 60_000));
  await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  await harbour.worker().settle();
  expect(harbour.machine.begun).toEqual(['in_use:Kon-Tiki', 'in_use:Kon-Tiki']);
  expect(await harbour.read(id)).toMatchObject({ dueAt: null, parkedUntil: null });
});

it('a touch costs a row that waits nothing of its place', async () => {
  const id = await harbour.ask();
  const { dueAt } = await harbour.read(id);
  await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  expect((await harbour.read(id)).dueAt).toEqual(dueAt);
});

it('a touch may be for rows in some states alone', async () => {
  const id = await harbour.ask();
  await harbour.worker().settle();
  const touch = (state: 'in_use' | 'clearing') =>
    harbour.transactions.run((manager) => harbour.machine.touch(manager, [id], [state]));
  await touch('clearing');
  expect((await harbour.read(id)).dueAt).toBeNull();
  await touch('in_use');
  expect((await harbour.read(id)).dueAt).not.toBeNull();
});

it('what a sweep finds is looked at, though nobody touched it', async () => {
  const [id] = [await harbour.ask(), await harbour.ask('Ra II')];
  await harbour.worker().settle();
  harbour.machine.begun.length = 0;
  harbour.machine.sweep = () => Promise.resolve([id]);
  await harbour.worker().settle();
  expect(harbour.machine.begun).toEqual(['in_use:Kon-Tiki']);
  const worker = harbour.worker({ sweepMs: 10, pollMs: 5 });
  worker.start();
  await harbour.eventuallyBegun(4);
  await worker.stop();
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

it('what is touched while its step is under way is looked at again, also where the claim has run out meanwhile', async () => {
  let answer: (outcome: 'rest') => void = () => undefined;
  const id = await harbour.ask();
  await harbour.worker().settle();
  harbour.machine.does.in_use = () => new Promise((resolve) => (answer = resolve));
  const touch = () => harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  await touch();
  const looking = harbour.worker().doNext();
  await eventually(() => harbour.machine.begun.includes('in_use:Kon-Tiki'));
  await harbour.dataSource.query('UPDATE berth SET claimed_until = clock_timestamp()');
  await touch();
  answer('rest');
  await looking;
  expect((await harbour.read(id)).dueAt).not.toBeNull();
});

it.each([['rest' as const], [{ againAfterMs: 60_000 }]])(
  'a look that goes well ends the trouble of those before it (%j)',
  async (found) => {
    const id = await harbour.ask();
    const worker = harbour.worker();
    await worker.settle();
    const look = async () => {
      await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
      await worker.settle();
      return harbour.read(id);
    };
    harbour.machine.does.in_use = () => refused();
    expect(await look()).toMatchObject({ attempts: 1, lastError: { code: 'silted' } });
    harbour.machine.does.in_use = () => Promise.resolve(found);
    expect(await look()).toMatchObject({ state: 'in_use', attempts: 0, lastError: null });
  },
);

it('a look that goes well leaves the reason with which its state began', async () => {
  const id = await harbour.ask();
  await harbour.transactions.run(async (manager) =>
    harbour.machine.move(
      manager,
      await harbour.read(id),
      'DREDGED',
      { actor: 'system:harbour' },
      {},
      { code: 'shallow', message: 'It is shallow.' },
    ),
  );
  await harbour.worker().settle();
  expect(await harbour.read(id)).toMatchObject({ state: 'in_use', lastError: { code: 'shallow' } });
});

it('a row is locked once nobody else has it, and read as it is then', async () => {
  const id = await harbour.ask();
  await inTransactionBeside(harbour.dataSource, async (other) => {
    await other.query('UPDATE berth SET attempts = 7 WHERE berth_id = $1', [id]);
    const locked = harbour.transactions.run((manager) => harbour.machine.lock(manager, id));
    await untilLockWaits(harbour.dataSource, { text: 'berth', unless: locked });
    await other.commitTransaction();
    expect(await locked).toMatchObject({ attempts: 7 });
  });
});
