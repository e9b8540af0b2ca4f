import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { expectErrors } from '@atoll/testing';
import { cause, Harbour, type BerthEntity } from './berth-fixture.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

type Decide = Extract<Awaited<ReturnType<typeof harbour.machine.step>>, { decide: unknown }>['decide'];

/** A berth in use that was touched and whose step has decided once; nothing else is due. */
async function decided(decide: Decide): Promise<BerthEntity> {
  const id = await harbour.ask();
  await harbour.worker().settle();
  harbour.machine.begun.length = 0;
  harbour.machine.does.in_use = () => Promise.resolve({ decide });
  await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  expect(await harbour.worker().doNext()).toBe(true);
  expect(harbour.machine.begun).toEqual(['in_use:Kon-Tiki']);
  return harbour.read(id);
}

describe('a row whose step decides under its lock', () => {
  it.each([true, false])('is at rest where that neither moves nor parks it, whatever it returns (%s)', async (said) => {
    expect(await decided(() => Promise.resolve(said))).toMatchObject({
      state: 'in_use',
      dueAt: null,
      claimToken: null,
    });
    expect(await harbour.worker().doNext()).toBe(false);
  });

  it('is at rest where its event changes nothing in its state', async () => {
    const berth = await decided((manager, row) => harbour.machine.move(manager, row, 'CLEARED', cause));
    expect(berth).toMatchObject({ state: 'in_use', dueAt: null, claimToken: null });
  });

  it('goes on in the state to which it was moved', async () => {
    const berth = await decided((manager, row) => harbour.machine.move(manager, row, 'LEAVE', cause));
    expect(berth).toMatchObject({ state: 'clearing', claimedUntil: null });
    expect(berth.dueAt).not.toBeNull();
  });

  it.each([0, 60_000])('is looked at again when it was parked until then (%s ms)', async (forMs) => {
    const berth = await decided((manager, row) => harbour.machine.park(manager, row, forMs));
    expect(berth).toMatchObject({ state: 'in_use', dueAt: null, claimToken: null });
    expect(berth.parkedUntil).not.toBeNull();
  });

  it('is looked at again where it was touched while its step ran, though nothing was decided', async () => {
    let isFirst = true;
    const id = await harbour.ask();
    await harbour.worker().settle();
    harbour.machine.begun.length = 0;
    harbour.machine.does.in_use = async () => {
      if (isFirst) await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
      isFirst = false;
      return { decide: () => Promise.resolve(true) };
    };
    await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
    const worker = harbour.worker();
    expect([await worker.doNext(), await worker.doNext(), await worker.doNext()]).toEqual([true, true, false]);
    expect(harbour.machine.begun).toEqual(['in_use:Kon-Tiki', 'in_use:Kon-Tiki']);
  });

  it('is free and due in a transient state, too, where it was touched while its step ran', async () => {
    const id = await harbour.ask();
    harbour.machine.does.dredging = async () => {
      await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
      return { decide: () => Promise.resolve() };
    };
    await harbour.worker().doNext();
    const { dueAt, ...berth } = await harbour.read(id);
    expect(berth).toMatchObject({ state: 'dredging', claimToken: null });
    expect(dueAt).not.toBeNull();
  });

  it('is not left to rest in a transient state: that is an error, and the step is run again', async () => {
    expectErrors(/A row in dredging cannot be left to rest/);
    harbour.machine.does.dredging = () => Promise.resolve({ decide: () => Promise.resolve(true) });
    const id = await harbour.ask();
    await harbour.worker().doNext();
    expect(await harbour.read(id)).toMatchObject({ state: 'dredging', attempts: 0 });
    expect((await harbour.read(id)).claimToken).not.toBeNull();
  });
});

it('a row in a final state that was made due is put to rest without a step, and its failed tries are forgotten', async () => {
  const id = await harbour.ask();
  const worker = harbour.worker();
  await worker.settle();
  await harbour.send(id, 'LEAVE');
  await worker.settle();
  harbour.machine.begun.length = 0;
  harbour.machine.does.free = () => Promise.reject(new Error('The berth is gone.'));
  await harbour.dataSource.query(
    `UPDATE berth SET attempts = 3, last_error = '{"code": "internal", "message": "An internal error.", "at": "2026-01-01T00:00:00Z"}'`,
  );
  await harbour.transactions.run((manager) => harbour.machine.touch(manager, [id]));
  await worker.settle();
  expect(harbour.machine.begun).toEqual([]);
  const atRest = { state: 'free', attempts: 0, lastError: null, dueAt: null, parkedUntil: null, claimToken: null };
  expect(await harbour.read(id)).toMatchObject(atRest);
});
