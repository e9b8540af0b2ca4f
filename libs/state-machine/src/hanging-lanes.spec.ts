import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { expectErrors, runs } from '@atoll/testing';
import fc from 'fast-check';
import { BerthEntity, eventually, Harbour } from './berth-fixture.js';
import { StepFailed } from './step-failed.js';

let harbour: Harbour;
let inFlight: Set<string>;
/** How many steps of each lane are under way, and were at most. */
let most: Map<string, number>;
beforeAll(async () => {
  harbour = await Harbour.open({ poolSize: 1, backgroundPoolSize: 1 });
});
beforeEach(async () => {
  inFlight = new Set();
  most = new Map();
  harbour.machine.does.dredging = hangWhere((lane) => lane.startsWith('hanging'));
});
afterEach(() => harbour.clear());
afterAll(() => harbour.close());

function hangWhere(hangs: (lane: string) => boolean): (berth: BerthEntity) => Promise<{ event: 'DREDGED' }> {
  return ({ ship, lane }) => {
    if (!hangs(lane)) return Promise.resolve({ event: 'DREDGED' });
    inFlight.add(`${lane} ${ship}`);
    const now = [...inFlight].filter((each) => each.startsWith(`${lane} `)).length;
    most.set(lane, Math.max(now, most.get(lane) ?? 0));
    return new Promise(() => undefined);
  };
}

const stateOf = async (id: string) => (await harbour.read(id)).state;
const askMany = (count: number, lane: (at: number) => string) =>
  harbour.transactions.run((manager) =>
    harbour.machine.insertAll(
      manager,
      Array.from({ length: count }, (_, at) => ({
        values: { ship: `${at}`, piers: [lane(at)] },
        cause: { actor: 'user:1' },
      })),
    ),
  );

describe('steps that hang', () => {
  it('hold up nothing of another lane: it is done while all of them are still in flight', async () => {
    await askMany(60, () => 'hanging');
    const worker = harbour.worker({ stepMs: 3_600_000 });
    worker.start();
    await eventually(() => inFlight.size === 4);
    const id = await harbour.ask('Fram', 'healthy');
    await eventually(async () => (await stateOf(id)) === 'in_use');
    expect([inFlight.size, most.get('hanging')]).toEqual([4, 4]);
    await worker.stop();
  });

  it('hold up nothing of a healthy lane, however many lanes hang, as long as they are fewer than half of the steps', async () => {
    await askMany(200, (at) => `hanging-${at % 20}`);
    const worker = harbour.worker({ stepMs: 3_600_000, concurrency: 42 });
    worker.start();
    await eventually(() => inFlight.size >= 20);
    const ids = await Promise.all(
      ['Fram', 'Vega', 'Ra', 'Tigris', 'Belgica'].map((ship) => harbour.ask(ship, 'healthy')),
    );
    await eventually(async () => (await Promise.all(ids.map(stateOf))).every((state) => state === 'in_use'));
    expect(Math.max(...most.values())).toBeLessThanOrEqual(4);
    await worker.stop();
  });

  it('law: whatever lanes hang, every row of a healthy lane is done, and a lane has no more under way than it may', async () => {
    const lanes = fc.array(fc.record({ hangs: fc.boolean(), rows: fc.integer({ min: 1, max: 12 }) }), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(lanes, fc.integer({ min: 1, max: 4 }), async (all, laneConcurrency) => {
        await harbour.dataSource.query('TRUNCATE berth');
        inFlight.clear();
        most.clear();
        for (const [at, { hangs, rows }] of all.entries())
          await askMany(rows, () => `${hangs ? 'hanging' : 'healthy'}-${at}`);
        const worker = harbour.worker({ stepMs: 3_600_000, concurrency: 100, laneConcurrency });
        worker.start();
        const healthy = all.filter(({ hangs }) => !hangs).reduce((sum, { rows }) => sum + rows, 0);
        await harbour.eventuallyIn('in_use', healthy);
        await worker.stop();
        for (const under of most.values()) expect(under).toBeLessThanOrEqual(laneConcurrency);
      }),
      runs(15),
    );
  });

  it('take no connection to the database from requests, nor from each other', async () => {
    await askMany(60, (at) => `hanging-${at}`);
    const worker = harbour.worker({ stepMs: 3_600_000 });
    worker.start();
    await eventually(() => inFlight.size === 60);
    // One connection for requests, held; one for all that workers do.
    await harbour.transactions.run(async () => {
      harbour.machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
      await worker.stop();
      expect(await harbour.worker().doNext()).toBe(true);
    });
  });

  it('are cut off; their lane is tried by one at a time then, until it answers', async () => {
    await askMany(12, () => 'hanging');
    const cutOff: string[] = [];
    harbour.machine.does.dredging = ({ ship, lane }, { signal }) => {
      signal.addEventListener('abort', () => {
        inFlight.delete(`${lane} ${ship}`);
        cutOff.push(ship);
      });
      return hangWhere(() => true)({ ship, lane } as BerthEntity);
    };
    const worker = harbour.worker({ stepMs: 50 });
    worker.start();
    await eventually(() => cutOff.length >= 4);
    most.clear();
    await eventually(() => cutOff.length >= 8);
    expect(most.get('hanging')).toBe(1);
    await worker.stop();
  });
});

it('a step that only waits does not say that its lane hangs no more; one that fails does', async () => {
  const outcomes = [
    { does: () => Promise.resolve({ againAfterMs: 3_600_000 }), isTriedLate: false },
    { does: () => Promise.reject(new StepFailed('silted', 'Silt.')), isTriedLate: true },
  ];
  for (const { does, isTriedLate } of outcomes) {
    await harbour.dataSource.query('TRUNCATE berth');
    harbour.machine.does = {};
    const worker = harbour.worker({ stepMs: 20 });
    const [hangs, late] = [await harbour.ask('hangs', 'a'), await harbour.ask('late', 'a')];
    await worker.settle();
    await harbour.send(hangs, 'LEAVE');
    harbour.machine.does.clearing = () => new Promise(() => undefined);
    await worker.doNext();
    const waits = await harbour.ask('waits', 'a');
    harbour.machine.does.dredging = does;
    await worker.doNext();
    await harbour.send(late, 'LEAVE');
    await harbour.pass(61);
    harbour.machine.begun.length = 0;
    harbour.machine.does.clearing = () => Promise.resolve({ event: 'CLEARED' });
    harbour.machine.does.filling = () => Promise.resolve({ event: 'UNDONE' });
    await worker.settle();
    expect([harbour.machine.begun.includes('clearing:late'), await stateOf(waits)]).toEqual([isTriedLate, 'free']);
  }
});

describe('a row with several lanes', () => {
  it('goes on in each of them, one after the other, and is done with the last', async () => {
    const visited: string[] = [];
    harbour.machine.does.dredging = ({ lane, furtherLanes }) => {
      visited.push(lane);
      return Promise.resolve(furtherLanes.length > 0 ? 'lane done' : { event: 'DREDGED' });
    };
    const id = await harbour.ask('Fram', 'a', 'b', 'c');
    await harbour.worker().settle();
    expect([visited, await stateOf(id), (await harbour.read(id)).attempts]).toEqual([['a', 'b', 'c'], 'in_use', 0]);
  });

  it('that fails in one goes on with the others first, and does nothing twice that was done', async () => {
    const visited: string[] = [];
    harbour.machine.does.dredging = ({ lane, furtherLanes }) => {
      visited.push(lane);
      if (lane === 'b' && visited.length < 4) return Promise.reject(new StepFailed('silted', 'Silt.'));
      return Promise.resolve(furtherLanes.length > 0 ? 'lane done' : { event: 'DREDGED' });
    };
    const id = await harbour.ask('Fram', 'a', 'b', 'c');
    for (let round = 0; round < 3; round += 1) {
      await harbour.worker().settle();
      await harbour.pass(10);
    }
    expect([visited, await stateOf(id)]).toEqual([['a', 'b', 'c', 'b'], 'in_use']);
  });

  it('that is given up says which lanes are left', async () => {
    harbour.machine.does.dredging = ({ lane, furtherLanes }) => {
      if (lane === 'b') return Promise.reject(new StepFailed('silted', 'Silt.'));
      return Promise.resolve(furtherLanes.length > 0 ? 'lane done' : { event: 'DREDGED' });
    };
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    const id = await harbour.ask('Fram', 'a', 'b', 'c');
    for (let round = 0; round < 4; round += 1) {
      await harbour.worker().settle();
      await harbour.pass(10);
    }
    const { state, lane, furtherLanes } = await harbour.read(id);
    // It has come into the next state with all of its lanes.
    expect([state, lane, furtherLanes]).toEqual(['filling', 'a', ['b', 'c']]);
  });

  it('and gives something back does so in all lanes that let it, before it is given up for those that do not', async () => {
    const visited: string[] = [];
    harbour.machine.does.clearing = ({ lane, furtherLanes }) => {
      visited.push(lane);
      if (lane !== 'c') return Promise.reject(new StepFailed('silted', 'Silt.', true));
      return Promise.resolve(furtherLanes.length > 0 ? 'lane done' : { event: 'CLEARED' });
    };
    harbour.machine.does.dredging = () => Promise.resolve({ event: 'DREDGED' });
    const id = await harbour.ask('Fram', 'a', 'b', 'c');
    await harbour.worker().settle();
    await harbour.send(id, 'LEAVE');
    for (let round = 0; round < 4; round += 1) {
      await harbour.worker().settle();
      await harbour.pass(10);
    }
    expect([visited, await harbour.read(id)]).toMatchObject([
      ['a', 'b', 'c', 'a'],
      { state: 'lost', lane: 'a', furtherLanes: ['b'] },
    ]);
  });

  it('cannot say that its last lane is done: that is an error, and the step is run again', async () => {
    expectErrors(/dredging has no further lane/);
    harbour.machine.does.dredging = () => Promise.resolve('lane done');
    const id = await harbour.ask('Fram', 'a');
    await harbour.worker().doNext();
    expect(await stateOf(id)).toBe('dredging');
  });
});

it('lanes may be assigned anew in the transaction that changes what they are made of', async () => {
  const id = await harbour.ask('Fram', 'a');
  await harbour.transactions.run(async (manager) => {
    await manager.update(BerthEntity, { berthId: id }, { piers: ['b', 'c'] });
    await harbour.machine.assignLanes(manager, [id]);
  });
  expect(await harbour.read(id)).toMatchObject({ lane: 'b', furtherLanes: ['c'] });
});
