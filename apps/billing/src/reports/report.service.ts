import type {
  BilledWorkspace,
  BillingReport,
  CallContext,
  PoolsReport,
  RegionalBillingQuery,
  StorageReport,
  TeamBillingQuery,
  WorkspaceBillingQuery,
  WorkspacesReport,
} from '@atoll/contracts';
import { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import { FactDetails } from './fact-details.js';
import { poolOf, subscriptionsOf } from './pools.js';
import { ReportAccess, zoneOf, type ReportSubject } from './report-access.js';
import { ReportSheet } from './report-sheet.js';
import { groupsOf, UsageReader } from './report-usage.js';
import { Resources } from './resources.js';
import { roundTree } from './rounding-tree.js';
import { volumeOf } from './volumes.js';

/** What the reports over a range answer. */
@Injectable()
export class ReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly access: ReportAccess,
    private readonly usage: UsageReader,
    private readonly resources: Resources,
    private readonly details: FactDetails,
  ) {}

  async team(query: TeamBillingQuery, { caller }: CallContext): Promise<Json<BillingReport>> {
    const period = readPeriod(query, zoneOf(caller));
    return this.ungrouped(period, await this.access.team(caller, query.team_id));
  }

  async workspace(query: WorkspaceBillingQuery, { caller }: CallContext): Promise<Json<BillingReport>> {
    const period = readPeriod(query, zoneOf(caller));
    return this.ungrouped(period, await this.access.workspace(caller, query.workspace_id));
  }

  async byWorkspace(query: TeamBillingQuery, { caller }: CallContext): Promise<Json<WorkspacesReport>> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id);
    const reading = this.usage.byLine({ ...subject, bounds: period.bounds, groupBy: 'workspaceId' });
    const sheet = this.sheet(period, subject);
    const { lines, resources } = await reading;
    const names = await this.resources.workspaceNames(lines.map(({ group }) => group));
    // By name, then id: a line break goes before whatever a name has in it.
    const groups = roundTree(groupsOf(lines, (id) => `${names.get(id) ?? ''}\n${id}`));
    const workspaces = groups.map((group) => {
      const workspace_name = names.get(group.id) ?? null;
      return Json.object<BilledWorkspace>({ workspace_id: group.id, workspace_name, ...sheet.costs(group) });
    });
    return Json.object<WorkspacesReport>({ ...sheet.report(groups, resources), workspaces: Json.list(workspaces) });
  }

  async pools(query: RegionalBillingQuery, { caller }: CallContext): Promise<Json<PoolsReport>> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id, query.region_id, { kind: 'gpuaas_pool' });
    const reading = this.usage.byLine({ ...subject, bounds: period.bounds, groupBy: 'poolId' });
    const sheet = this.sheet(period, subject);
    const { lines, resources } = await reading;
    const subscriptions = subscriptionsOf(resources);
    const [poolDetails, details] = await Promise.all([
      this.details.pools(subject.teamNo, [...new Set(subscriptions.map(({ poolId }) => poolId))]),
      this.details.subscriptions(subject.teamNo, subscriptions),
    ]);
    const detailed = subscriptions.map((subscription, n) => ({ ...subscription, ...(details[n] ?? { profile: null, vRamGb: null }) }));
    const byPool = Map.groupBy(detailed, ({ poolId }) => poolId);
    // Ids are numbers: so many digits put them in their order.
    const groups = roundTree(groupsOf(lines, (id) => id.padStart(20, '0')));
    const pools = groups.map((group) => poolOf(group, poolDetails.get(group.id), byPool.get(group.id) ?? [], sheet));
    return Json.object<PoolsReport>({ ...sheet.report(groups, resources), pools: Json.list(pools) });
  }

  async storage(query: RegionalBillingQuery, { caller }: CallContext): Promise<Json<StorageReport>> {
    const period = readPeriod(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id, query.region_id, { kind: 'shared_storage' });
    const reading = this.usage.byResource({ ...subject, bounds: period.bounds });
    const sheet = this.sheet(period, subject);
    const lines = await reading;
    const groups = roundTree(groupsOf(lines));
    const details = await this.details.volumes(
      subject.teamNo,
      groups.map(({ id }) => ({ resourceId: id })),
    );
    const volumes = groups.map((group, n) => volumeOf(group, details[n], sheet));
    return Json.object<StorageReport>({ ...sheet.report(groups, lines), volumes: Json.list(volumes) });
  }

  private async ungrouped(period: BillingPeriod, subject: ReportSubject): Promise<Json<BillingReport>> {
    const reading = this.usage.byLine({ ...subject, bounds: period.bounds });
    const sheet = this.sheet(period, subject);
    const { lines, resources } = await reading;
    return Json.object(sheet.report(roundTree([{ lines }]), resources));
  }

  /** To be made while usage is read: it takes about as long. */
  private sheet(period: BillingPeriod, subject: ReportSubject): ReportSheet {
    return new ReportSheet(this.settings.currency, period, subject);
  }
}
