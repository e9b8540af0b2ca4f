import type { describe as Describe } from '@jest/globals';

/**
 * A group of specs that need something of the machine which `npm run test:setup` installs. `lacking` says in a sentence
 * what is missing; undefined: nothing. Where something is missing none of them runs, each counts as skipped, and
 * `npm test` says why at its end. In CI a skipped spec is a failure.
 */
export function describeWhere(lacking: string | undefined, name: string, specs: () => void): void {
  // The globals of Jest: tools import this library outside of it.
  const { describe } = globalThis as unknown as { describe: typeof Describe };
  if (lacking === undefined) describe(name, specs);
  // oxlint-disable-next-line atoll/no-idle-test -- The end of a run lists it.
  else describe.skip(`${name} (not run: ${lacking})`, specs);
}
