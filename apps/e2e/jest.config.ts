import config from '../../jest.config.ts';

const { ATOLL_TOPOLOGY: topology, ATOLL_E2E_PART: part, ATOLL_TEST_TIMEOUT_FACTOR: factor } = process.env;

// A machine on which everything takes longer answers later too: for every process that a story starts.
process.env.ATOLL_DEADLINE_MS ??= String(5_000 * Math.max(1, Number(factor) || 1));

/** The set-up runs from the build: it starts the built platform, and Jest maps no aliases outside of specs. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['<rootDir>/apps/e2e'],
  testMatch: [part === 'on-containers' ? '**/on-containers/*.e2e-spec.ts' : '**/*.e2e-spec.ts'],
  // Stories of one topology alone: what needs a bus between processes, and what one process does by itself.
  testPathIgnorePatterns: [
    topology === 'services' ? '/in-one-process/' : '/over-nats/',
    ...(part === 'others' ? ['/on-containers/'] : []),
  ],
  globalSetup: '<rootDir>/dist/apps/e2e/src/set-up.js',
  globalTeardown: '<rootDir>/dist/apps/e2e/src/tear-down.js',
  setupFilesAfterEnv: [...(config.setupFilesAfterEnv ?? []), '<rootDir>/apps/e2e/src/after-each-story.ts'],
  testSequencer: '<rootDir>/dist/apps/e2e/src/sequencer.js',
};
