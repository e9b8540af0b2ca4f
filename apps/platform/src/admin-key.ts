import { newAdminKey, service as teams } from '../../teams/src/service.js';
import { besidePlatform } from './beside-platform.js';

/**
 * `npm run admin-key`: a new key for the operator who lost the old one, made at the machine. A running platform takes
 * up to 5 s to forget the old one.
 */
await besidePlatform(teams.settings, async ({ connect, settings }) => {
  const key = await newAdminKey(await connect(teams.name), settings);
  console.log(`\nAdmin key: ${key}\nShown this once; it does not expire. The earlier one no longer works.\n`);
});
