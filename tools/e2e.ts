import { run, type Outcome } from './run.ts';

export const topologies = ['one-process', 'services'] as const;
export type Topology = (typeof topologies)[number];

/** Runs the black-box suite against one topology. Expects a build. */
export function runE2e(topology: Topology, options: string[] = []): Promise<Outcome> {
  return run(['npm run --silent jest -- --config apps/e2e/jest.config.ts', ...options].join(' '), { env: { ATOLL_TOPOLOGY: topology } });
}

if (import.meta.main) {
  const [wanted, ...options] = process.argv.slice(2);
  const topology = topologies.find((known) => known === wanted);
  if (!topology) {
    console.error(`Say which topology: npm run e2e -- ${topologies.join('|')} [options of Jest]`);
    process.exitCode = 2;
  } else {
    const built = await run('npm run --silent build');
    process.exitCode = built.ok && (await runE2e(topology, options)).ok ? 0 : 1;
  }
}
