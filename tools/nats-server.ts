import { findNatsServer } from '@atoll/testing';

// Finds or fetches the broker that specs and `npm run start:services` start, so that what lacks is said once and
// plainly.
try {
  console.log(`nats-server: ${await findNatsServer()}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
