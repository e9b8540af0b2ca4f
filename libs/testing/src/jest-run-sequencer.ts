import { existsSync, statSync } from 'node:fs';

/** Spec files that take more than some 8 s, of which they wait for the most part, without `.spec.ts`. */
const long = [
  'libs/cluster/src/docker/isolation',
  'apps/gpuaas/src/laws/interleavings',
  'apps/gpuaas/src/baremetal/hosts/hostile-tenants',
  'apps/gpuaas/src/clusters/cluster-checks',
  'libs/cluster/src/docker/docker-driver',
  'apps/gpuaas/src/baremetal/real-host',
  'libs/state-machine/src/worker-processes',
  'apps/gpuaas/src/baremetal/hosts/host-drivers',
  'libs/events/src/crashes',
  'libs/cluster/src/simulated/simulated-contract',
  'libs/events/src/dead-letter-desk',
  'libs/rpc/src/secret-check',
  'libs/events/src/delivery',
  'libs/events/src/exactly-once',
  'libs/events/src/missing-events',
  'libs/events/src/jetstream-courier',
  'libs/events/src/stream-limit',
  'apps/gpuaas/src/baremetal/interleavings',
  'apps/teams/src/mail/mail',
  'apps/gpuaas/src/baremetal/instances/provisioning',
  'apps/gpuaas/src/baremetal/nodes/silent-hosts',
  'apps/pods/src/vms/vm',
  'libs/database/src/outages',
  'apps/pods/src/pods/run-collector',
  'apps/gateway/src/requests/fair-rpc',
];

const root = new URL('../../../', import.meta.url).pathname;
const gone = long.filter((name) => !existsSync(`${root}${name}.spec.ts`));
if (gone.length > 0) throw new Error(`No such spec file any more: ${gone.join(', ')}`);

interface Shard {
  /** From 1. */
  readonly shardIndex: number;
  readonly shardCount: number;
}

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

  /** For `--shard`: parts of one run on several machines, each with as many long files as the others. */
  shard<T extends { readonly path: string }>(tests: readonly T[], { shardIndex, shardCount }: Shard): T[] {
    return this.sort(tests).filter((_, at) => at % shardCount === shardIndex - 1);
  }

  cacheResults(): void {}
}

export { Sequencer as default };
