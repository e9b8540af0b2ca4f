import type { CallContext } from '@atoll/contracts';
import type {
  BilledWorkspace,
  BillingReport,
  PoolsReport,
  RatedPoolsReport,
  RegionalBillingQuery,
  StorageReport,
  TeamBillingQuery,
  WorkspaceBillingQuery,
  WorkspacesReport,
} from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import type { Pace } from '@atoll/waiting';
import { FactDetails, noDetails } from './fact-details.js';
import { JsonWriter } from './json-writer.js';
import { subscriptionsOf, writePool } from './pools.js';
import { ReportAccess, zoneOf, type ReportSubject } from './report-access.js';
import { ReportQueue } from './report-queue.js';
import { ReportSheet } from './report-sheet.js';
import { groupsOf, UsageReader, type UsageQuestion } from './report-usage.js';
import { Resources } from './resources.js';
import { roundTree } from './rounding-tree.js';
import { writeVolume } from './volumes.js';

/** What the reports over a range answer. */
@Injectable()
export class ReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly access: ReportAccess,
    private readonly queue: ReportQueue,
    private readonly usage: UsageReader,
    private readonly resources: Resources,
    private readonly details: FactDetails,
  ) {}

  async team(query: TeamBillingQuery, context: CallContext): Promise<Json<BillingReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    this.access.requireTeam(context.caller, query.team_id);
    return this.queue.run(query.team_id, context, async (pace) =>
      this.ungrouped(period, await this.access.team(query.team_id, pace), pace),
    );
  }

  async workspace(query: WorkspaceBillingQuery, context: CallContext): Promise<Json<BillingReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    const workspace = await this.access.requireWorkspace(context.caller, query.workspace_id);
    return this.queue.run(workspace.teamId, context, async (pace) =>
      this.ungrouped(period, await this.access.workspace(workspace, pace), pace),
    );
  }

  async byWorkspace(query: TeamBillingQuery, context: CallContext): Promise<Json<WorkspacesReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    this.access.requireTeam(context.caller, query.team_id);
    return this.queue.run(query.team_id, context, async (pace) => {
      const subject = await this.access.team(query.team_id, pace);
      const [{ lines, resources }, sheet] = await this.read(period, subject, pace, 'workspaceId');
      const names = await this.resources.workspaceNames(
        lines.map(({ group }) => group),
        pace,
      );
      // By name, then id: a line break goes before whatever a name has in it.
      const groups = await roundTree(await groupsOf(lines, pace, (id) => `${names.get(id) ?? ''}\n${id}`), pace);
      const writer = new JsonWriter();
      await sheet.writeReport(writer, groups, resources, pace);
      writer.text(',"workspaces":');
      await writer.list(groups, pace, async (group) => {
        const head: Omit<BilledWorkspace, 'total_cost' | 'intervals'> = {
          workspace_id: group.id,
          workspace_name: names.get(group.id) ?? null,
        };
        writer.startObject(head);
        await sheet.writeCosts(writer, group, pace);
        writer.text('}');
      });
      writer.text('}');
      return writer.end();
    });
  }

  pools(query: RegionalBillingQuery, context: CallContext): Promise<Json<PoolsReport>> {
    return this.ofPools(query, context, { isRated: false });
  }

  ratedPools(query: RegionalBillingQuery, context: CallContext): Promise<Json<RatedPoolsReport>> {
    return this.ofPools(query, context, { isRated: true });
  }

  async storage(query: RegionalBillingQuery, context: CallContext): Promise<Json<StorageReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    this.access.requireTeam(context.caller, query.team_id);
    return this.queue.run(query.team_id, context, async (pace) => {
      const subject = await this.access.team(query.team_id, pace, query.region_id, { kinds: ['shared_storage'] });
      const question = { ...subject, bounds: period.bounds };
      const [lines, sheet] = await Promise.all([
        this.usage.byResource(question, pace),
        this.sheet(period, subject, pace),
      ]);
      const groups = await roundTree(await groupsOf(lines, pace), pace);
      const asked = await pace.map(groups, ({ id }) => ({ resourceId: id }));
      const details = await this.details.volumes(subject.teamNo, asked, pace);
      const writer = new JsonWriter();
      await sheet.writeReport(writer, groups, lines, pace);
      writer.text(',"volumes":');
      await writer.list(groups, pace, (group, n) => writeVolume(writer, sheet, group, details[n], pace));
      writer.text('}');
      return writer.end();
    });
  }

  private async ofPools<Report>(
    query: RegionalBillingQuery,
    context: CallContext,
    shown: { isRated: boolean },
  ): Promise<Json<Report>> {
    const period = readPeriod(query, zoneOf(context.caller));
    this.access.requireTeam(context.caller, query.team_id);
    return this.queue.run(query.team_id, context, async (pace) => {
      const subject = await this.access.team(query.team_id, pace, query.region_id, { kinds: ['gpuaas_pool'] });
      const [{ lines, resources }, sheet] = await this.read(period, subject, pace, 'poolId');
      const subscriptions = await subscriptionsOf(resources, pace);
      // Ids are numbers: so many digits put them in their order.
      const groups = await roundTree(await groupsOf(lines, pace, (id) => id.padStart(20, '0')), pace);
      const details = await this.details.subscriptions(subject.teamNo, subscriptions, pace);
      const pools = await this.details.pools(subject.teamNo, groups, pace);
      const detailed = await pace.map(subscriptions, (subscription, n) => ({
        ...subscription,
        ...(details[n] ?? noDetails),
      }));
      const byPool = await pace.groupBy(detailed, ({ poolId }) => poolId);
      const writer = new JsonWriter();
      await sheet.writeReport(writer, groups, resources, pace);
      writer.text(',"pools":');
      await writer.list(groups, pace, (group, n) => {
        const inside = { details: pools[n], subscriptions: byPool.get(group.id) ?? [], ...shown };
        return writePool(writer, sheet, group, inside, pace);
      });
      writer.text('}');
      return writer.end();
    });
  }

  private async ungrouped(period: BillingPeriod, subject: ReportSubject, pace: Pace): Promise<Json<BillingReport>> {
    const [{ lines, resources }, sheet] = await this.read(period, subject, pace);
    const writer = new JsonWriter();
    await sheet.writeReport(writer, await roundTree([{ lines }], pace), resources, pace);
    writer.text('}');
    return writer.end();
  }

  private read(period: BillingPeriod, subject: ReportSubject, pace: Pace, groupBy?: UsageQuestion['groupBy']) {
    const question = { ...subject, bounds: period.bounds, ...(groupBy && { groupBy }) };
    return Promise.all([this.usage.byLine(question, pace), this.sheet(period, subject, pace)]);
  }

  /** To be made while usage is read: it takes about as long. */
  private sheet(period: BillingPeriod, subject: ReportSubject, pace: Pace): Promise<ReportSheet> {
    return ReportSheet.of(this.settings.currency, period, subject, pace);
  }
}
