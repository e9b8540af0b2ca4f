import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runs, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import fc from 'fast-check';
import { DeadLetters } from './dead-letters.js';
import { eventually } from './world/eventually-fixture.js';
import { specRetries, shopDatabase } from './world/shop-fixture.js';
import { inProcess, overJetStream, type Topology } from './world/topology-fixture.js';
import { World, type Moment } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
});
afterAll(async () => {
  await nats.stop();
  await database.drop();
});

type Step =
  | { kind: 'place'; count: number }
  | { kind: 'roll back'; count: number }
  | { kind: 'crash'; moment: Moment }
  | { kind: 'fail'; tries: number }
  | { kind: 'break'; server: 'database' | 'broker' }
  | { kind: 'deliver again' };

const moments: Moment[] = ['beforePublish', 'afterPublish', 'inEffect', 'afterTake'];
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('place' as const), count: fc.integer({ min: 1, max: 8 }) }) },
  fc.record({ kind: fc.constant('roll back' as const), count: fc.integer({ min: 1, max: 3 }) }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('crash' as const), moment: fc.constantFrom(...moments) }) },
  fc.record({ kind: fc.constant('fail' as const), tries: fc.integer({ min: 1, max: specRetries.maxTries - 1 }) }),
  fc.record({ kind: fc.constant('break' as const), server: fc.constantFrom('database' as const, 'broker' as const) }),
  fc.record({ kind: fc.constant('deliver again' as const) }),
);

async function play(world: World, steps: readonly Step[]): Promise<void> {
  let next = 0;
  let failuresLeft = 0;
  const take = (count: number) => Array.from({ length: count }, () => next++);
  world.script = (payload, consumer) => {
    if (consumer === 'letters' && failuresLeft-- > 0) throw new Error(`not yet ${payload.number}`);
  };
  // A server that was cut off, or a process that dies meanwhile, fails the call; whoever called tries again.
  const place = (count: number) => eventually(() => world.orders.place(take(count)));
  const plays: { [Kind in Step['kind']]: (step: Extract<Step, { kind: Kind }>) => Promise<void> } = {
    place: ({ count }) => place(count),
    'roll back': ({ count }) => expect(world.orders.place(take(count), { fails: true })).rejects.toThrow(),
    crash: async ({ moment }) => {
      const crashed = world.crashAt(moment);
      const placing = place(2);
      await crashed;
      await world.restartDead();
      await placing;
    },
    fail: ({ tries }) => Promise.resolve(void (failuresLeft = tries)),
    break: async ({ server }) => {
      await place(1);
      world.cut(server);
      world.mend(server);
    },
    'deliver again': async () => {
      for (const event of [...world.published].reverse()) await world.deliverAgain(event);
    },
  };
  for (const one of steps) await (plays[one.kind] as (step: Step) => Promise<void>)(one);
}

describe.each([inProcess, overJetStream])('$name', (topology: Topology) => {
  it('whatever crashes, fails, breaks or comes twice, each committed event has its effect once, and no other has any', async () => {
    const world = await World.open(topology, { database: database.url, broker: nats.url });
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 7 }), async (steps) => {
          await world.reset();
          // More than a run can use up: dead letters are another story.
          world.retries = { maxTries: 100 };
          await world.start();
          await play(world, steps);
          // A connection that was cut may still commit what it was told to: so again, until nothing comes any more.
          await eventually(async () => {
            await world.settled();
            const committed = await world.placed();
            expect(await world.app('mail').get(DeadLetters).list()).toEqual([]);
            for (const consumer of ['letters', 'statistics']) {
              expect((await world.noted(consumer)).sort((a, b) => a - b)).toEqual(committed);
            }
          });
        }),
        { ...runs(12), endOnFailure: true },
      );
    } finally {
      await world.close();
    }
  });
});
