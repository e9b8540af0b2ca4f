import { run, type Outcome } from './run.ts';

export const topologies = ['one-process', 'services'] as const;
export type Topology = (typeof topologies)[number];

/**
 * The networks of containers come and go with them, and Chromium drops whatever it is loading when the networks of its machine
 * change. So stories on containers run apart from those in a browser.
 */
export const parts = ['others', 'on-containers'] as const;
export type Part = (typeof parts)[number];

/** Runs the black-box suite, or a part of it, against one topology. Expects a build. */
export function runE2e(topology: Topology, options: string[] = [], part?: Part): Promise<Outcome> {
  const env = { ATOLL_TOPOLOGY: topology, ...(part && { ATOLL_E2E_PART: part }) };
  return run(['npm run --silent jest -- --config apps/e2e/jest.config.ts', ...options].join(' '), { env });
}

async function runAll(topology: Topology): Promise<boolean> {
  const outcomes: Outcome[] = [];
  for (const part of parts) outcomes.push(await runE2e(topology, [], part));
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
