import type {
  BillingReport,
  CallContext,
  PoolsReport,
  RegionalBillingQuery,
  StorageReport,
  TeamBillingQuery,
  WorkspaceBillingQuery,
  WorkspacesReport,
} from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import { poolsOf } from './pools.js';
import { ReportAccess, zoneOf, type ReportSubject } from './report-access.js';
import { costsOf, groupsOf, showReport, type Group, type ShownReport } from './report-shapes.js';
import { UsageReader, type ReportLine, type ResourceLine } from './report-usage.js';
import { Resources } from './resources.js';
import { volumesOf } from './volumes.js';

/** What the reports over a range answer. */
@Injectable()
export class ReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly access: ReportAccess,
    private readonly usage: UsageReader,
    private readonly resources: Resources,
  ) {}

  async team(query: TeamBillingQuery, { caller }: CallContext): Promise<BillingReport> {
    const period = readPeriod(query, zoneOf(caller));
    return this.ungrouped(period, await this.access.team(caller, query.team_id));
  }

  async workspace(query: WorkspaceBillingQuery, { caller }: CallContext): Promise<BillingReport> {
    const period = readPeriod(query, zoneOf(caller));
    return this.ungrouped(period, await this.access.workspace(caller, query.workspace_id));
  }

  async byWorkspace(query: TeamBillingQuery, { caller }: CallContext): Promise<WorkspacesReport> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id);
    const { lines, resources } = await this.usage.byLine({ ...subject, bounds: period.bounds, groupBy: 'workspaceId' });
    const names = await this.resources.workspaceNames(lines.map(({ group }) => group));
    const { report, groups, frames } = this.show(
      period,
      subject,
      groupsOf(lines, (id) => `${names.get(id) ?? ''} ${id}`),
      resources,
    );
    const workspaces = groups.map((group) => ({
      workspace_id: group.id,
      workspace_name: names.get(group.id) ?? null,
      ...costsOf(frames, group),
    }));
    return { ...report, workspaces };
  }

  async pools(query: RegionalBillingQuery, { caller }: CallContext): Promise<PoolsReport> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id, query.region_id, { kind: 'gpuaas_pool' });
    const { lines, resources } = await this.usage.byLine({ ...subject, bounds: period.bounds, groupBy: 'poolId' });
    const asked = resources.map(({ timeline, group }) => ({ timelineNo: timeline.no, poolId: group }));
    const told = await this.resources.told(asked, ['region_id', 'pool_name', 'profile', 'v_ram_gb']);
    const { report, groups, frames } = this.show(
      period,
      subject,
      groupsOf(lines, (id) => id.padStart(20, '0')),
      resources,
    );
    return { ...report, pools: poolsOf(frames, groups, resources, told) };
  }

  async storage(query: RegionalBillingQuery, { caller }: CallContext): Promise<StorageReport> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id, query.region_id, { kind: 'shared_storage' });
    const lines = await this.usage.byResource({ ...subject, bounds: period.bounds });
    const asked = lines.map(({ timeline }) => ({ timelineNo: timeline.no }));
    const told = await this.resources.told(asked, ['region_id', 'resource_name', 'used_size_in_gb']);
    const { report, groups, frames } = this.show(period, subject, groupsOf(lines), lines);
    return { ...report, volumes: volumesOf(frames, groups, told) };
  }

  private async ungrouped(period: BillingPeriod, subject: ReportSubject): Promise<BillingReport> {
    const { lines, resources } = await this.usage.byLine({ ...subject, bounds: period.bounds });
    return this.show(period, subject, [{ id: '', lines }], resources).report;
  }

  private show<Line extends ReportLine>(
    period: BillingPeriod,
    subject: ReportSubject,
    groups: Group<Line>[],
    resources: ResourceLine[],
  ): ShownReport<Line> {
    return showReport({ ...subject, currency: this.settings.currency, period, groups, resources });
  }
}
