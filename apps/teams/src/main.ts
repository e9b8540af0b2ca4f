import { deletionHolders } from '@atoll/contracts';
import { runService } from '@atoll/service';
import { TeamsEnv } from './env.js';
import { Administrators, TeamsModule } from './teams.module.js';

await runService({
  name: 'teams',
  env: TeamsEnv,
  module: (env, { rpc, courier }) =>
    TeamsModule.register({ databaseUrl: env.DATABASE_URL, keyPepper: env.ATOLL_KEY_PEPPER, deletionHolders, rpc, courier }),
  started: async (app, env) => {
    const { apiKey } = await app.get(Administrators).ensure({
      email: env.ATOLL_ADMIN_EMAIL,
      ...(env.ATOLL_ADMIN_KEY !== undefined && { apiKey: env.ATOLL_ADMIN_KEY }),
    });
    // For a person, once, and past the logs, which never hold a key.
    if (apiKey) console.log(`\nAdmin key: ${apiKey}\nShown this once; it does not expire.\n`);
  },
});
