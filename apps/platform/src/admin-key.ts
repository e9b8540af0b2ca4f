import { createApiKey } from '@atoll/api-keys';
import { newAdminKey, service as teams } from '../../teams/src/service.js';
import { besidePlatform } from './beside-platform.js';

const usage = 'Usage: npm run admin-key [-- --new-pepper | --print]';

/**
 * `npm run admin-key`: a new key for the operator who lost the old one, made at the machine. A running platform takes
 * up to 5 s to forget the old one. `npm run admin-key -- --new-pepper`, for an operator who lost ATOLL_KEY_PEPPER: the
 * one that is set takes its place, and teams starts with it. `npm run --silent admin-key -- --print`: a key for
 * ATOLL_ADMIN_KEY, which is stored nowhere; it needs no platform.
 */
const [option, ...others] = process.argv.slice(2);
if (option === '--print' && others.length === 0) console.log(createApiKey());
else
  await besidePlatform(teams.settings, async ({ connect, settings }) => {
    if (others.length > 0 || (option !== undefined && option !== '--new-pepper')) throw new Error(usage);
    const isNewPepper = option === '--new-pepper';
    const key = await newAdminKey(await connect(teams.name), settings, { isNewPepper });
    console.log(`\nAdmin key: ${key}\nShown this once; it does not expire. The earlier one no longer works.`);
    // A key that the platform has there and this command has not is new to the next start, which would take it.
    if (isNewPepper)
      console.log(
        'Before the next start, remove ATOLL_ADMIN_KEY wherever the platform is started, or set another key.',
      );
    console.log();
  });
