import { TeamDirectoryModule } from '@atoll/team-directory';
import { Module } from '@nestjs/common';
import { Turns } from '@atoll/waiting';
import { CurrencyController } from './prices/currency.controller.js';
import { PlatformCurrency } from './prices/platform-currency.js';
import { PriceDirectoryController } from './prices/price-directory.controller.js';
import { PricesController } from './prices/price.controller.js';
import { PricesService } from './prices/price.service.js';
import { ComparisonService } from './reports/comparison.service.js';
import { InstanceReportsController } from './reports/instance-report.controller.js';
import { ReportMaker } from './reports/report-maker.js';
import { ReportQueue } from './reports/report-queue.js';
import { ReportsController } from './reports/report.controller.js';
import { ReportsService } from './reports/report.service.js';
import { ResourceReportsService } from './reports/resource-report.service.js';
import { FactStore } from './usage/fact-store.js';
import { Numbering } from './usage/numbering.js';
import { Tenancy } from './usage/tenancy.js';
import { Timelines } from './usage/timelines.js';
import { UsageOfServices } from './usage/usage-of-services.js';
import { UsageController } from './usage/usage.controller.js';
import { UsageService } from './usage/usage.service.js';

/** Usage facts, prices, and the billing queries. */
@Module({
  imports: [TeamDirectoryModule.forRoot({ service: 'billing' })],
  controllers: [
    CurrencyController,
    InstanceReportsController,
    PriceDirectoryController,
    PricesController,
    ReportsController,
    UsageController,
  ],
  providers: [
    ComparisonService,
    FactStore,
    Numbering,
    PlatformCurrency,
    PricesService,
    ReportMaker,
    ReportQueue,
    ReportsService,
    ResourceReportsService,
    Tenancy,
    Timelines,
    Turns,
    UsageOfServices,
    UsageService,
  ],
})
export class BillingModule {}
