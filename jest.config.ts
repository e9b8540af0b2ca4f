import type { Config } from 'jest';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const swc = JSON.parse(readFileSync(new URL('./.swcrc', import.meta.url), 'utf8')) as {
  jsc: { paths?: object };
  exclude?: string[];
};
// Jest resolves the aliases itself, so that it can tell which specs a change touches.
delete swc.jsc.paths;
delete swc.exclude;

const config: Config = {
  rootDir: '.',
  roots: ['<rootDir>/libs', '<rootDir>/apps', '<rootDir>/tools'],
  testMatch: ['**/*.spec.ts'],
  // It needs a network of its own: `npm run test:docker`.
  testPathIgnorePatterns: ['/node_modules/', '/on-docker\\.spec\\.ts$'],
  // Libraries and product are loaded once in a worker, not for each spec file.
  testEnvironment: '<rootDir>/libs/testing/src/jest-run-environment.ts',
  runtime: '<rootDir>/libs/testing/src/jest-run-modules.ts',
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': ['@swc/jest', { ...swc, swcrc: false }] },
  moduleNameMapper: {
    '^@atoll/([a-z-]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^@atoll/contracts/([a-z-]+)$': '<rootDir>/libs/contracts/src/$1/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  globalSetup: '<rootDir>/libs/testing/src/jest-run-setup.ts',
  globalTeardown: '<rootDir>/libs/testing/src/jest-run-teardown.ts',
  testSequencer: '<rootDir>/libs/testing/src/jest-run-sequencer.ts',
  setupFilesAfterEnv: ['<rootDir>/libs/testing/src/jest-error-log.ts'],
  testTimeout: 240_000 * Math.max(1, Number(process.env.ATOLL_TEST_TIMEOUT_FACTOR) || 1),
  // A spec waits about as long as it computes.
  maxWorkers: 2 * Math.min(availableParallelism(), 4),
  // A worker with more than this is replaced by a new one, which loads everything again.
  workerIdleMemoryLimit: '800MB',
};

export { config as default };
