import config from '../../jest.config.ts';

/** The contract of clusters on Docker, which changes the firewall of the network in which it runs. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['<rootDir>/libs/cluster'],
  testMatch: ['**/on-docker.spec.ts'],
  testPathIgnorePatterns: [],
};
