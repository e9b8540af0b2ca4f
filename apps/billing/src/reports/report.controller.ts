import { type CallContext } from '@atoll/contracts';
import {
  billingReports,
  type BillingReport,
  type ComparisonQuery,
  type ComparisonReport,
  type PoolsReport,
  type RatedPoolsReport,
  type ReportInstant,
  type RegionalReportQuery,
  type StorageReport,
  type TeamReportQuery,
  type WorkspaceReportQuery,
  type WorkspacesReport,
} from '@atoll/contracts/billing';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ComparisonService } from './comparison.service.js';
import { ReportMaker } from './report-maker.js';
import { ReportsService } from './report.service.js';
import { ResourceReportsService } from './resource-report.service.js';

@Controller()
export class ReportsController implements Handlers<typeof billingReports> {
  constructor(
    private readonly maker: ReportMaker,
    private readonly reports: ReportsService,
    private readonly comparisons: ComparisonService,
    private readonly resources: ResourceReportsService,
  ) {}

  @Handle(billingReports.now)
  now(): Promise<ReportInstant> {
    return this.maker.now();
  }

  @Handle(billingReports.team)
  team(query: TeamReportQuery, context: CallContext): Promise<Json<BillingReport>> {
    return this.reports.team(query, context);
  }

  @Handle(billingReports.workspace)
  workspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<BillingReport>> {
    return this.reports.workspace(query, context);
  }

  @Handle(billingReports.byWorkspace)
  byWorkspace(query: TeamReportQuery, context: CallContext): Promise<Json<WorkspacesReport>> {
    return this.reports.byWorkspace(query, context);
  }

  @Handle(billingReports.pools)
  pools(query: RegionalReportQuery, context: CallContext): Promise<Json<PoolsReport>> {
    return this.reports.pools(query, context);
  }

  @Handle(billingReports.ratedPools)
  ratedPools(query: RegionalReportQuery, context: CallContext): Promise<Json<RatedPoolsReport>> {
    return this.reports.ratedPools(query, context);
  }

  @Handle(billingReports.storage)
  storage(query: RegionalReportQuery, context: CallContext): Promise<Json<StorageReport>> {
    return this.resources.storage(query, context);
  }

  @Handle(billingReports.comparison)
  comparison(query: ComparisonQuery, context: CallContext): Promise<ComparisonReport> {
    return this.comparisons.compare(query, context);
  }
}
