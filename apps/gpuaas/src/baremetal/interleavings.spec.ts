import { afterAll, beforeAll, it, jest } from '@jest/globals';
import { runs, timeoutFactor } from '@atoll/testing';
import fc from 'fast-check';
import type { ToldTeam } from '../gpuaas-fixture.js';
import { BaremetalFixture } from './baremetal-fixture.js';
import { crashableOperations, World, type Command } from './interleavings-fixture.js';

/**
 * Most hosts fail, most failures are for good, and undoing fails too: what the laws are about is rare where all goes
 * well.
 */
const provisioning = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 6, arbitrary: fc.constantFrom('user-fail', 'keys-fail', 'password-fail', 'verify-fail') },
  { weight: 3, arbitrary: fc.constantFrom('reach-refuse', 'user-drop', 'password-lie', 'verify-refuse') },
);
const undoing = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: fc.constantFrom('revoke-refuse', 'revoke-drop') },
);
const faults = fc.tuple(provisioning, undoing).map((both) => both.join('.'));
const which = fc.nat(20);
const host = fc.nat(1);

const request = fc.record({ kind: fc.constant('request' as const), gpus: fc.constantFrom(1, 2, 4) });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: request },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('end' as const), which }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'settle' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('work' as const), steps: fc.integer({ min: 1, max: 8 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('together' as const), workers: fc.integer({ min: 2, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(3, 20, 200) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('break' as const), host, faults }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('offer' as const), host, isOffered: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      operation: fc.constantFrom(...crashableOperations),
      isAfter: fc.boolean(),
    }),
  },
);

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

it(
  'law: whatever the order of requests, releases, failures and crashes, host and database agree, hosts are given in the order of arrival, and all comes to rest',
  async () => {
    const someRequests = fc.array(request, { minLength: 2, maxLength: 4 });
    const commands = fc
      .tuple(someRequests, fc.array(command, { minLength: 8, maxLength: 20 }))
      .map((parts) => parts.flat());
    await fc.assert(
      fc.asyncProperty(fc.tuple(faults, faults), commands, async (begun, all) => {
        const world = await World.create(fixture, team, begun);
        world.watch();
        try {
          for (const next of all) {
            await world.obey(next);
            await world.check();
          }
          await world.checkEnd();
        } finally {
          jest.restoreAllMocks();
        }
      }),
      runs(15),
    );
  },
  600_000 * timeoutFactor,
);
