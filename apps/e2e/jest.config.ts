import config from '../../jest.config.ts';

/** The set-up runs from the build: it starts the built platform, and Jest maps no aliases outside of specs. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['<rootDir>/apps/e2e'],
  testMatch: ['**/*.e2e-spec.ts'],
  // Stories of one topology alone: what needs a bus between processes, and what one process does by itself.
  testPathIgnorePatterns: process.env.ATOLL_TOPOLOGY === 'services' ? ['/in-one-process/'] : ['/over-nats/'],
  globalSetup: '<rootDir>/dist/apps/e2e/src/set-up.js',
  globalTeardown: '<rootDir>/dist/apps/e2e/src/tear-down.js',
};
