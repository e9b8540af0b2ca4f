import { appendFileSync } from 'node:fs';
import { expect } from '@jest/globals';
import { recorderName } from './probes.js';

/** Set-up of each spec file in the run with probes: writes down, once for each, what the spec file has run. */
const seen = new Set<string>();
const { testPath } = expect.getState();
const { ATOLL_MUTANTS_RAN: file } = process.env;
if (file === undefined) throw new Error('ATOLL_MUTANTS_RAN is missing.');
const record = (probe: string): void => {
  if (seen.has(probe)) return;
  seen.add(probe);
  appendFileSync(file, `${testPath}\t${probe}\n`);
};
Object.assign(globalThis, { [recorderName]: record });
