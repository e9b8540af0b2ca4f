import config from '../../jest.config.ts';

const { ATOLL_TOPOLOGY: topology, ATOLL_E2E_PART: part } = process.env;

/** The set-up runs from the build: it starts the built platform, and Jest maps no aliases outside of specs. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['<rootDir>/apps/e2e'],
  testMatch: [part === 'on-containers' ? '**/on-containers/*.e2e-spec.ts' : '**/*.e2e-spec.ts'],
  // Stories of one topology alone: what needs a bus between processes, and what one process does by itself.
  testPathIgnorePatterns: [topology === 'services' ? '/in-one-process/' : '/over-nats/', ...(part === 'others' ? ['/on-containers/'] : [])],
  globalSetup: '<rootDir>/dist/apps/e2e/src/set-up.js',
  globalTeardown: '<rootDir>/dist/apps/e2e/src/tear-down.js',
  testSequencer: '<rootDir>/dist/apps/e2e/src/sequencer.js',
};
