import { type CallContext } from '@atoll/contracts';
import {
  instanceReports,
  type InstancesReport,
  type TeamReportQuery,
  type WorkspaceReportQuery,
} from '@atoll/contracts/billing';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ResourceReportsService } from './resource-report.service.js';

@Controller()
export class InstanceReportsController implements Handlers<typeof instanceReports> {
  constructor(private readonly reports: ResourceReportsService) {}

  @Handle(instanceReports.ofTeam)
  ofTeam(query: TeamReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    return this.reports.instancesOfTeam(query, context);
  }

  @Handle(instanceReports.ofWorkspace)
  ofWorkspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    return this.reports.instancesOfWorkspace(query, context);
  }
}
