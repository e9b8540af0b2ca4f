import { defineService } from '@atoll/service';
import { BillingModule } from './billing.module.js';
import { BillingSettings } from './billing-settings.js';
import { billingSchema } from './database/schema.js';

/** A report of a large team may take longer than other statements, and still less than its caller waits. */
const timeouts = { statementMs: 4_000, queryMs: 4_300 };

export const service = defineService({
  name: 'billing',
  settings: BillingSettings,
  database: { ...billingSchema, timeouts, poolSize: 20 },
  module: BillingModule,
});
