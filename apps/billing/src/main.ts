import { runService } from '@atoll/service';
import { BillingModule } from './billing.module.js';
import { BillingEnv } from './env.js';

await runService({
  name: 'billing',
  env: BillingEnv,
  module: (env, { rpc, courier }) => BillingModule.register({ databaseUrl: env.DATABASE_URL, currency: env.ATOLL_CURRENCY, rpc, courier }),
});
