import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { setup } from 'xstate';
import { BerthEntity, BerthMachine, eventually, Harbour, type BerthEvent, type BerthState } from './berth-fixture.js';
import { Claims } from './claims.js';
import { defineMachine, type MachineDefinition, type TransientRule } from './definition.js';
import { StepFailed } from './step-failed.js';

const portion = 8;
const logic = setup({
  types: { meta: {} as TransientRule, events: {} as { type: 'DREDGED' | 'FAILED' } },
}).createMachine({
  id: 'berth',
  initial: 'dredging',
  states: {
    dredging: {
      meta: {
        deadlineMs: 60_000,
        givesUpBy: 'FAILED',
        backOff: { firstMs: 3_600_000, maxMs: 3_600_000 },
        givesBack: true,
        portion,
      },
      on: { DREDGED: 'free', FAILED: 'lost' },
    },
    free: { type: 'final' },
    lost: { type: 'final' },
  },
});

let harbour: Harbour;
let machine: BerthMachine;
beforeAll(async () => {
  harbour = await Harbour.open();
});
beforeEach(() => {
  const definition = defineMachine(logic) as unknown as MachineDefinition<BerthState, BerthEvent>;
  machine = new BerthMachine(harbour.dataSource, { entity: BerthEntity, definition });
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

const askMany = (count: number, lane: (at: number) => string = (at) => `${at}`) =>
  harbour.transactions.run((manager) =>
    machine.insertAll(
      manager,
      Array.from({ length: count }, (_, at) => ({
        values: { ship: `${at}`, piers: [lane(at)] },
        cause: { actor: 'user:1' },
      })),
    ),
  );
const count = async (condition: string): Promise<number> => {
  const [found] = await harbour.dataSource.query<{ count: number }[]>(
    `SELECT count(*)::int FROM berth WHERE ${condition}`,
  );
  return found?.count ?? 0;
};
const underWay = () => count(`state = 'dredging' AND deadline_at IS NOT NULL`);
/** Nothing is to be done for an hour. */
const switching = () => Promise.resolve({ againAfterMs: 3_600_000 });
const hanging = () => new Promise<never>(() => undefined);
const shipsBegun = () => machine.begun.map((step) => step.replace('dredging:', ''));

describe('of many rows that enter a state with a portion at once', () => {
  it('so many are begun, and the others have no deadline, however long they wait', async () => {
    machine.does.dredging = switching;
    await askMany(3 * portion);
    const worker = harbour.worker({}, machine);
    await worker.settle();
    expect([machine.begun.length, await underWay()]).toEqual([portion, portion]);
    machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
    await harbour.pass(86_400);
    await worker.settle();
    expect(await count(`state = 'free'`)).toBe(3 * portion);
  });

  it('each is done before the next is begun, so that they come through one after the other', async () => {
    const looks = new Map<string, number>();
    machine.does.dredging = ({ ship }) => {
      looks.set(ship, (looks.get(ship) ?? 0) + 1);
      return Promise.resolve(looks.get(ship) === 3 ? { event: 'DREDGED' } : { againAfterMs: 0 });
    };
    await askMany(2 * portion);
    await harbour.worker({}, machine).settle();
    const ships = [...looks.keys()];
    expect(ships).toHaveLength(2 * portion);
    expect(shipsBegun()).toEqual(ships.flatMap((ship) => [ship, ship, ship]));
  });

  it('half of those begun next have waited for longest, and half came last', async () => {
    machine.does.dredging = hanging;
    await askMany(100);
    const worker = harbour.worker({ concurrency: 4 }, machine);
    worker.start();
    await eventually(() => machine.begun.length === 4);
    expect(shipsBegun().toSorted((one, other) => Number(one) - Number(other))).toEqual(['0', '1', '98', '99']);
    await worker.stop();
  });

  it('those that are urgent are begun at once, whatever else is under way, and none twice', async () => {
    machine.does.dredging = switching;
    machine.urgent = `ship LIKE 'royal%'`;
    await askMany(3 * portion);
    const worker = harbour.worker({}, machine);
    await worker.settle();
    expect(machine.begun).toHaveLength(portion);
    await harbour.dataSource.query(`UPDATE berth SET ship = 'royal ' || ship WHERE ship IN ('7', '9', '11')`);
    await worker.settle();
    await worker.settle();
    expect(shipsBegun().filter((ship) => ship.startsWith('royal')).length).toBeGreaterThan(0);
    expect(await count(`ship LIKE 'royal%' AND deadline_at IS NULL`)).toBe(0);
    expect(new Set(shipsBegun()).size).toBe(machine.begun.length);
  });

  it('those that are urgent count no more once they are, so that they keep no room from others', async () => {
    machine.does.dredging = switching;
    machine.urgent = `ship LIKE 'royal%'`;
    await askMany(3 * portion);
    const worker = harbour.worker({}, machine);
    await worker.settle();
    await harbour.dataSource.query(`UPDATE berth SET ship = 'royal ' || ship WHERE deadline_at IS NOT NULL`);
    await worker.settle();
    await worker.settle();
    expect([await underWay(), await count(`ship LIKE 'royal%'`)]).toEqual([2 * portion, portion]);
  });

  it('in a lane no more are under way than it may have, also where some are begun beside those that are due', async () => {
    machine.does.dredging = hanging;
    await askMany(portion, () => 'one');
    await harbour.dataSource.query(
      `UPDATE berth SET deadline_at = now() + interval '1 hour', due_at = now() WHERE berth_id IN (SELECT berth_id FROM berth ORDER BY berth_id LIMIT 4)`,
    );
    const worker = harbour.worker({ laneConcurrency: 4 }, machine);
    const begins = jest.spyOn(Claims.prototype, 'begin');
    worker.start();
    await eventually(() => begins.mock.calls.length > 5);
    await worker.stop();
    begins.mockRestore();
    expect(machine.begun).toHaveLength(4);
  });

  it('what was claimed is worked at though no more can be begun', async () => {
    machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
    await askMany(portion);
    await harbour.dataSource.query(`UPDATE berth SET deadline_at = now() + interval '1 hour', due_at = now()`);
    const begins = jest
      .spyOn(Claims.prototype, 'begin')
      .mockRejectedValue(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const worker = harbour.worker({}, machine);
    worker.start();
    await harbour.eventuallyIn('free', portion);
    await worker.stop();
    begins.mockRestore();
    warn.mockRestore();
  });

  it('where one has room, chance decides which of both it is, so that neither waits for ever', async () => {
    await askMany(60);
    const worker = harbour.worker({}, machine);
    for (let step = 0; step < 40; step += 1) await worker.doNext();
    expect(shipsBegun()).toEqual(expect.arrayContaining(['0', '59']));
  });

  it('those of a lane that has failed keep no room from others', async () => {
    machine.does.dredging = ({ lane }) =>
      lane === 'silted'
        ? Promise.reject(new StepFailed('silted', 'There is too much silt.'))
        : Promise.resolve({ event: 'DREDGED' });
    await askMany(5 * portion, (at) => (at < 2 * portion || at >= 4 * portion ? 'silted' : `${at}`));
    await harbour.worker({}, machine).settle();
    expect(await count(`state = 'free'`)).toBe(2 * portion);
  });

  it('those that do not end keep room from others for a quarter of their time; where none ends, four portions are under way', async () => {
    machine.does.dredging = switching;
    await askMany(10 * portion);
    const worker = harbour.worker({}, machine);
    const quarters: number[] = [];
    for (let quarter = 0; quarter < 6; quarter += 1) {
      await worker.settle();
      await worker.settle();
      quarters.push((await underWay()) / portion);
      await harbour.pass(15.1);
    }
    expect(quarters).toEqual([1, 2, 3, 4, 4, 4]);
  });

  it('those of a lane that hangs keep room from others until a step is cut off, and no longer', async () => {
    machine.does.dredging = ({ lane }) => (lane === 'hangs' ? hanging() : Promise.resolve({ event: 'DREDGED' }));
    await askMany(3 * portion, (at) => (at < portion || at >= 2 * portion ? 'hangs' : `${at}`));
    const worker = harbour.worker({ stepMs: 50 }, machine);
    worker.start();
    await eventually(async () => (await count(`state = 'free'`)) === portion);
    await worker.stop();
    expect(await count(`state = 'lost'`)).toBe(0);
  });

  it('two processes take each one once, and twice the portion at most', async () => {
    let most = 0;
    machine.does.dredging = async () => {
      most = Math.max(most, await underWay());
      return { event: 'DREDGED' };
    };
    const workers = [harbour.worker({}, machine), harbour.worker({}, machine)];
    for (const worker of workers) worker.start();
    await askMany(10 * portion);
    await eventually(async () => (await count(`state = 'free'`)) === 10 * portion);
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(shipsBegun().toSorted()).toEqual([...new Set(shipsBegun())].toSorted());
    expect(most).toBeLessThanOrEqual(2 * portion);
  });
});
