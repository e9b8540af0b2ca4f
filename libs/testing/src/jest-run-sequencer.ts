import { existsSync, statSync } from 'node:fs';

/** Spec files that take more than some 8 s, of which they wait for the most part, without `.spec.ts`. */
const long = [
  'apps/gpuaas/src/laws/interleavings',
  'libs/events/src/dead-letter-desk',
  'apps/gpuaas/src/clusters/cluster-checks',
  'libs/events/src/crashes',
  'libs/cluster/src/simulated/simulated-contract',
  'libs/state-machine/src/worker-processes',
  'apps/pods/src/vms/vm',
  'apps/pods/src/pods/pod',
  'libs/rpc/src/secret-check',
  'libs/events/src/exactly-once',
  'libs/events/src/stream-limit',
  'libs/events/src/missing-events',
  'apps/gpuaas/src/baremetal/interleavings',
  'libs/database/src/outages',
  'apps/gateway/src/authentication/invented-keys',
  'apps/gateway/src/requests/fair-rpc',
  'libs/events/src/jetstream-courier',
];

const root = new URL('../../../', import.meta.url).pathname;
const gone = long.filter((name) => !existsSync(`${root}${name}.spec.ts`));
if (gone.length > 0) throw new Error(`No such spec file any more: ${gone.join(', ')}`);

/**
 * Runs long spec files early, so that none of them is left alone at the end, in turn with the largest of the others,
 * which compute while those wait. The same in a fresh clone, where Jest knows of no durations yet.
 */
class Sequencer {
  sort<T extends { readonly path: string }>(tests: readonly T[]): T[] {
    const placeOf = ({ path }: T) => long.findIndex((name) => path === `${root}${name}.spec.ts`);
    const first = tests.filter((test) => placeOf(test) !== -1).toSorted((one, other) => placeOf(one) - placeOf(other));
    const others = tests
      .filter((test) => placeOf(test) === -1)
      .map((test) => ({ test, size: statSync(test.path).size }));
    const rest = others
      .toSorted((one, other) => other.size - one.size || (one.test.path < other.test.path ? -1 : 1))
      .map(({ test }) => test);
    return [...first.flatMap((test, at) => [test, ...rest.slice(at, at + 1)]), ...rest.slice(first.length)];
  }

  cacheResults(): void {}
}

export { Sequencer as default };
