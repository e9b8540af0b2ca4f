import { DatabaseModule } from '@atoll/database';
import { EventsModule, type Courier } from '@atoll/events';
import { TeamDirectoryModule } from '@atoll/team-directory';
import { Module, type DynamicModule } from '@nestjs/common';
import { BillingSettings } from './billing-settings.js';
import { billingSchema } from './database/schema.js';
import { PricesController } from './prices/price.controller.js';
import { PricesService } from './prices/price.service.js';
import { Catalogues } from './reports/catalogue.js';
import { ComparisonService } from './reports/comparison.service.js';
import { FactDetails } from './reports/fact-details.js';
import { ReportAccess } from './reports/report-access.js';
import { ReportsController } from './reports/report.controller.js';
import { ReportsService } from './reports/report.service.js';
import { UsageReader } from './reports/report-usage.js';
import { Resources } from './reports/resources.js';
import { UsageQuery } from './reports/usage-query.js';
import { Numbering } from './usage/numbering.js';
import { UsageOfServices } from './usage/usage-told.js';
import { UsageController } from './usage/usage.controller.js';
import { UsageService } from './usage/usage.service.js';

export interface BillingOptions {
  databaseUrl: string;
  poolSize?: number;
  /** Gives the application its `Rpc`. */
  rpc: DynamicModule;
  courier: Courier;
  /** ISO 4217; USD unless given. */
  currency?: string;
}

/** A report of a large team may take longer than other statements, and still less than its caller waits. */
const timeouts = { acquireMs: 1_500, statementMs: 4_000, queryMs: 4_300 };

/** Usage facts, prices, and the billing queries. */
@Module({
  controllers: [PricesController, ReportsController, UsageController],
  providers: [
    Catalogues,
    ComparisonService,
    FactDetails,
    Numbering,
    PricesService,
    ReportAccess,
    ReportsService,
    Resources,
    UsageOfServices,
    UsageQuery,
    UsageReader,
    UsageService,
  ],
})
export class BillingModule {
  static register(options: BillingOptions): DynamicModule {
    const { databaseUrl: url, poolSize, rpc, courier, currency = 'USD' } = options;
    const settings: BillingSettings = { currency };
    return {
      module: BillingModule,
      imports: [
        DatabaseModule.forRoot({ ...billingSchema, url, timeouts, ...(poolSize !== undefined && { poolSize }) }),
        EventsModule.forRoot({ service: 'billing', courier }),
        TeamDirectoryModule.forRoot({ service: 'billing' }),
        rpc,
      ],
      providers: [{ provide: BillingSettings, useValue: settings }],
    };
  }
}
