import { afterAll, beforeAll, it } from '@jest/globals';
import fc from 'fast-check';
import type { GpuaasFixture } from '../gpuaas-fixture.js';
import { checkEnd, checkLaws } from './check-fixture.js';
import { runs } from '@atoll/testing';
import { World, type Happening } from './world-fixture.js';

const number = fc.nat({ max: 5 });

const asked: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('subscribe' as const), pool: number, vgpus: fc.constantFrom(1, 1, 2, 3, 8), profile: number }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('start' as const),
      subscription: fc.constantFrom(0, 0, 0, 1, 2, 3),
      vgpus: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('unsubscribe' as const), subscription: number, force: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('stop' as const), workload: number }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('resize' as const), subscription: number, vgpus: fc.integer({ min: 1, max: 4 }) }),
  },
);

const done: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('work' as const), machine: fc.nat({ max: 7 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 7, 20, 70) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), machine: number }) },
);

const trouble: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    kind: fc.constant('fault' as const),
    operation: fc.constantFrom('init', 'switch', 'observe', 'confirm', 'occupy', 'vacate'),
    fault: fc.constantFrom('refuse', 'fail', 'hang', 'busy', 'lie'),
    times: fc.constantFrom(1, 3, 1000),
  }) as fc.Arbitrary<Happening>,
  fc.constant({ kind: 'mend' as const }),
  fc.record({ kind: fc.constant('cordon' as const), isOn: fc.boolean() }),
  fc.constant({ kind: 'reset' as const }),
);

const happenings = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: asked },
    { weight: 6, arbitrary: done },
    { weight: 2, arbitrary: trouble },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('at once' as const), all: fc.array(fc.oneof(asked, done), { minLength: 2, maxLength: 4 }) }),
    },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await World.startFixture();
});
afterAll(() => fixture.stop());

it('whatever is asked, in whatever order, whatever fails and whoever dies: nothing is held twice, no slot is lost, mode, leases and device agree, and all that is transient ends', async () => {
  await fc.assert(
    fc.asyncProperty(happenings, async (all) => {
      const world = await World.make(fixture);
      for (const what of all) {
        await world.happen(what);
        await checkLaws(world);
      }
      await world.rest();
      await checkLaws(world);
      await world.giveBackAll();
      await checkEnd(world);
    }),
    // A run ends at the first failure: to make it smaller would take long, and its happenings can be read as they are.
    { ...runs(20), endOnFailure: true },
  );
  // As long as `npm run laws` may take.
}, 7_200_000);
