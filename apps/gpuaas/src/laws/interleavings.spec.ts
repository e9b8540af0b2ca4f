import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { GpuaasFixture } from '../gpuaas-fixture.js';
import { checkEnd, checkLaws } from './check-fixture.js';
import { deadlocksOf, runs } from '@atoll/testing';
import { QueueCheck } from './queue-check-fixture.js';
import { World, type Happening } from './world-fixture.js';

const number = fc.nat({ max: 5 });

const asked: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('subscribe' as const),
      pool: number,
      vgpus: fc.constantFrom(1, 1, 2, 3, 8),
      profile: number,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('start' as const),
      subscription: fc.constantFrom(0, 0, 0, 1, 2, 3),
      vgpus: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('unsubscribe' as const), subscription: number, force: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('stop' as const), workload: number }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('resize' as const),
      subscription: number,
      vgpus: fc.integer({ min: 1, max: 4 }),
    }),
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
      arbitrary: fc.record({
        kind: fc.constant('at once' as const),
        all: fc.array(fc.oneof(asked, done), { minLength: 2, maxLength: 4 }),
      }),
    },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);

const mpsPools = fc.constantFrom<Happening>(
  { kind: 'subscribe', pool: 1, vgpus: 1, profile: 0 },
  { kind: 'start', subscription: 0, vgpus: 1 },
);

/** Some wait for GPUs that come to rest, and one of them goes when they are served. */
const withdrawn: fc.Arbitrary<Happening[]> = fc
  .record({ asked: fc.array(mpsPools, { minLength: 2, maxLength: 4 }), waiting: number })
  .map(({ asked, waiting }) => [
    ...asked,
    { kind: 'mend' },
    ...[2, 2].flatMap((seconds): Happening[] => [
      { kind: 'work', machine: 0 },
      { kind: 'pass', seconds },
    ]),
    { kind: 'work', machine: 0 },
    { kind: 'withdraw while served', waiting },
  ]);

/** Few places, and a device that is slow to give memory back: so that many requests meet a GPU on its way. */
const races = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('start' as const),
        subscription: fc.constant(0),
        vgpus: fc.constantFrom(1, 1, 1, 2),
      }),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('stop' as const), workload: fc.nat({ max: 9 }) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('subscribe' as const),
        pool: fc.constant(1),
        vgpus: fc.constantFrom(1, 1, 2),
        profile: fc.constant(0),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('unsubscribe' as const),
        subscription: fc.nat({ max: 9 }),
        force: fc.constant(true),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('resize' as const),
        subscription: fc.integer({ min: 1, max: 9 }),
        vgpus: fc.constantFrom(1, 2, 3),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({ kind: fc.constant('work' as const), machine: fc.constantFrom(2, 3, 2, 3, 0, 7) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('withdraw while served' as const), waiting: number }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 2, 15) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('fault' as const),
        operation: fc.constant('observe' as const),
        fault: fc.constant('busy' as const),
        times: fc.constantFrom(10, 60),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('fault' as const),
        operation: fc.constantFrom('switch' as const, 'confirm' as const),
        fault: fc.constantFrom('fail' as const, 'hang' as const, 'refuse' as const),
        times: fc.constant(1),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'mend' as const }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('at once' as const),
        all: fc.array(fc.oneof(asked, done), { minLength: 2, maxLength: 4 }),
      }),
    },
  ),
  { minLength: 20, maxLength: 50, size: 'max' },
);

/**
 * Three on the GPUs of the MPS pools, one of them leaves, and the devices hold its memory: both are on their way back.
 */
const onTheirWay: readonly Happening[] = [
  { kind: 'subscribe', pool: 1, vgpus: 2, profile: 0 },
  ...[1, 1, 1].map((vgpus) => ({ kind: 'start' as const, subscription: 0, vgpus })),
  { kind: 'pass', seconds: 1 },
  { kind: 'work', machine: 7 },
  { kind: 'pass', seconds: 1 },
  { kind: 'work', machine: 7 },
  { kind: 'fault', operation: 'observe', fault: 'busy', times: 100 },
  { kind: 'stop', workload: 2 },
  { kind: 'unsubscribe', subscription: 1, force: true },
  { kind: 'work', machine: 3 },
  { kind: 'work', machine: 2 },
];

const raced = fc
  .record({ first: fc.option(withdrawn, { nil: [] }), then: races })
  .map(({ first, then }) => [...onTheirWay, ...first, ...then]);

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await World.startFixture();
});
afterAll(() => fixture.stop());

it.each([
  ['whatever is asked, in whatever order, whatever fails and whoever dies', happenings, 20],
  ['whatever meets GPUs that switch', raced, 15],
])(
  'law: %s, nothing is held twice, no slot is lost, mode, leases and device agree, what waits is served in order, nothing is refused that fits, no locks cross, and all that is transient ends',
  async (_, all, count) => {
    const property = fc.asyncProperty(all, (each) => live(each));
    // A run ends at the first failure: to make it smaller would take long, and its happenings can be read as they are.
    expect(await deadlocksOf(() => fc.assert(property, { ...runs(count), endOnFailure: true }))).toEqual([]);
  },
  // As long as `npm run laws` may take.
  7_200_000,
);

/** One world from its beginning to its end. */
async function live(all: readonly Happening[]): Promise<void> {
  const world = await World.make(fixture);
  const queue = new QueueCheck(world);
  for (const what of all) {
    const asked = await world.askedOf(what);
    const error = await world.happen(what);
    if (asked && error) await queue.checkRefusal(asked.pool, asked.vgpus, error);
    await checkLaws(world);
    await queue.check();
  }
  await world.rest();
  await checkLaws(world);
  await queue.checkAtRest();
  await world.giveBackAll();
  await checkEnd(world);
}
