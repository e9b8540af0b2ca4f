import { run, type Outcome } from './run.ts';

export const topologies = ['one-process', 'services'] as const;
export type Topology = (typeof topologies)[number];

/**
 * The networks of containers come and go with them, and Chromium drops whatever it is loading when the networks of its
 * machine change. So stories on containers run apart from those in a browser, and those in a network of their own:
 * others on the machine have containers too.
 */
const parts = ['others', 'on-containers'] as const;
export type Part = (typeof parts)[number];

/** Where no container runs, all stories are one part. Expects a build. */
export async function partsHere(): Promise<readonly (Part | undefined)[]> {
  const built = new URL('../dist/libs/testing/src/podman.js', import.meta.url);
  const { podmanLacks } = (await import(built.href)) as { podmanLacks: () => string | undefined };
  return podmanLacks() === undefined ? parts : [undefined];
}

/** Runs the black-box suite, or a part of it, against one topology. Expects a build. */
export async function runE2e(topology: Topology, options: string[] = [], part?: Part): Promise<Outcome> {
  const env = { ATOLL_TOPOLOGY: topology, ...(part && { ATOLL_E2E_PART: part }) };
  const network = part !== 'on-containers' && (await canHaveOwnNetwork()) ? ['sh', 'tools/own-network.sh'] : [];
  const jest = ['npm', 'run', '--silent', 'jest', '--', '--config', 'apps/e2e/jest.config.ts'];
  return run([...network, ...jest, ...options], { env });
}

/** Where what stories use runs in the machine's network, and where this is not root on Linux, they run there too. */
async function canHaveOwnNetwork(): Promise<boolean> {
  if (process.env.ATOLL_E2E_URL || process.env.ATOLL_TEST_DATABASE_URL) return false;
  return (await run('sh tools/own-network.sh getent hosts localhost', { capture: true })).ok;
}

async function runAll(topology: Topology): Promise<boolean> {
  const outcomes: Outcome[] = [];
  for (const part of await partsHere()) outcomes.push(await runE2e(topology, [], part));
  return outcomes.every(({ ok }) => ok);
}

if (import.meta.main) {
  const [wanted, ...options] = process.argv.slice(2);
  const topology = topologies.find((known) => known === wanted);
  if (!topology) {
    console.error(`Say which topology: npm run e2e -- ${topologies.join('|')} [options of Jest]`);
    process.exitCode = 2;
  } else {
    const built = await run('npm run --silent build');
    const prove = async () => (options.length === 0 ? runAll(topology) : (await runE2e(topology, options)).ok);
    process.exitCode = built.ok && (await prove()) ? 0 : 1;
  }
}
