import type { CallContext } from '@atoll/contracts';
import type {
  BilledWorkspace,
  BillingReport,
  PoolsReport,
  RatedPoolsReport,
  RegionalReportQuery,
  StorageReport,
  TeamReportQuery,
  WorkspaceReportQuery,
  WorkspacesReport,
} from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import type { Pace } from '@atoll/waiting';
import type { CatalogueFilter } from './catalogue.js';
import { FactDetails } from './fact-details.js';
import { subscriptionsOf, writePool } from './pools.js';
import { ReportMaker, zoneOf, type ReadOf, type ReportSubject } from './report-maker.js';
import { ReportSheet } from './report-sheet.js';
import { groupsOf, UsageReader, type ReportUsage, type UsageQuestion } from './report-usage.js';
import { Resources } from './resources.js';
import { roundTree } from './rounding-tree.js';
import { writeVolume } from './volumes.js';

const pools: CatalogueFilter = { kinds: ['gpuaas_pool'] };
const volumes: CatalogueFilter = { kinds: ['shared_storage'] };

/** Of a report: nothing more is read for it. */
interface ReadReport {
  usage: ReportUsage;
  sheet: ReportSheet;
}

/** What the reports over a range answer. */
@Injectable()
export class ReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly maker: ReportMaker,
  ) {}

  async team(query: TeamReportQuery, context: CallContext): Promise<Json<BillingReport>> {
    const read = this.reading(readPeriod(query, zoneOf(context.caller)));
    return this.maker.ofTeam(query, context, { read, write: ungrouped });
  }

  async workspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<BillingReport>> {
    const read = this.reading(readPeriod(query, zoneOf(context.caller)));
    return this.maker.ofWorkspace(query, context, { read, write: ungrouped });
  }

  async byWorkspace(query: TeamReportQuery, context: CallContext): Promise<Json<WorkspacesReport>> {
    const readUsage = this.reading(readPeriod(query, zoneOf(context.caller)), 'workspaceId');
    return this.maker.ofTeam(query, context, {
      read: async (subject, snapshot, pace) => {
        const read = await readUsage(subject, snapshot, pace);
        const ids = await read.usage.lines.groups(pace);
        return { ...read, names: await new Resources(snapshot).workspaceNames(ids, pace) };
      },
      write: async ({ usage, sheet, names }, pace) => {
        const lines = await usage.lines.rate(pace);
        // By name, then id: a line break goes before whatever a name has in it.
        const orderOf = (id: string) => `${names.get(id) ?? ''}\n${id}`;
        const groups = await roundTree(await groupsOf(lines, pace, { orderOf }), pace);
        return sheet.report(groups, await usage.resources.rate(pace), pace, {
          name: 'workspaces',
          write: async (writer, group) => {
            const head: Omit<BilledWorkspace, 'total_cost' | 'intervals'> = {
              workspace_id: group.id,
              workspace_name: names.get(group.id) ?? null,
            };
            writer.startObject(head);
            await sheet.writeCosts(writer, group, pace);
            writer.text('}');
          },
        });
      },
    });
  }

  pools(query: RegionalReportQuery, context: CallContext): Promise<Json<PoolsReport>> {
    return this.ofPools(query, context, { isRated: false });
  }

  ratedPools(query: RegionalReportQuery, context: CallContext): Promise<Json<RatedPoolsReport>> {
    return this.ofPools(query, context, { isRated: true });
  }

  async storage(query: RegionalReportQuery, context: CallContext): Promise<Json<StorageReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    return this.maker.ofTeam(query, context, {
      filter: volumes,
      read: async (subject, snapshot, pace) => {
        const [usage, sheet] = await Promise.all([
          new UsageReader(snapshot).byResource({ ...subject, bounds: period.bounds }, pace),
          this.sheet(period, subject, pace),
        ]);
        const asked = await pace.map(await usage.placed(pace), ({ resourceId }) => ({ id: resourceId, resourceId }));
        return { usage, sheet, details: await new FactDetails(snapshot).volumes(subject.teamNo, asked, pace) };
      },
      write: async ({ usage, sheet, details }, pace) => {
        const lines = await usage.rate(pace);
        const groups = await roundTree(await groupsOf(lines, pace, { idOf: ({ resourceId }) => resourceId }), pace);
        return sheet.report(groups, lines, pace, {
          name: 'volumes',
          write: (writer, group) => writeVolume(writer, sheet, group, details.get(group.id), pace),
        });
      },
    });
  }

  private async ofPools<Report>(
    query: RegionalReportQuery,
    context: CallContext,
    shown: { isRated: boolean },
  ): Promise<Json<Report>> {
    const readUsage = this.reading(readPeriod(query, zoneOf(context.caller)), 'poolId');
    return this.maker.ofTeam(query, context, {
      filter: pools,
      read: async (subject, snapshot, pace) => {
        const read = await readUsage(subject, snapshot, pace);
        const { lines, resources } = read.usage;
        const placed = await resources.placed(pace);
        const asked = await pace.map(placed, ({ id, group, resourceId }) => ({ id, resourceId, poolId: group }));
        const details = new FactDetails(snapshot);
        return {
          ...read,
          ofSubscriptions: await details.subscriptions(subject.teamNo, asked, pace),
          ofPools: await details.pools(subject.teamNo, await lines.groups(pace), pace),
        };
      },
      write: async ({ usage, sheet, ofSubscriptions, ofPools }, pace) => {
        const lines = await usage.lines.rate(pace);
        const resources = await usage.resources.rate(pace);
        const byPool = await pace.groupBy(
          await subscriptionsOf(resources, ofSubscriptions, pace),
          ({ poolId }) => poolId,
        );
        // Ids are numbers: so many digits put them in their order.
        const orderOf = (id: string) => id.padStart(20, '0');
        const groups = await roundTree(await groupsOf(lines, pace, { orderOf }), pace);
        return sheet.report(groups, resources, pace, {
          name: 'pools',
          write: (writer, group) => {
            const inside = { details: ofPools.get(group.id), subscriptions: byPool.get(group.id) ?? [], ...shown };
            return writePool(writer, sheet, group, inside, pace);
          },
        });
      },
    });
  }

  /** Reads usage by line, and makes the sheet meanwhile. */
  private reading(period: BillingPeriod, groupBy?: UsageQuestion['groupBy']): ReadOf<ReadReport> {
    return async (subject, snapshot, pace) => {
      const question = { ...subject, bounds: period.bounds, ...(groupBy && { groupBy }) };
      const reading = new UsageReader(snapshot).byLine(question, pace);
      const [usage, sheet] = await Promise.all([reading, this.sheet(period, subject, pace)]);
      return { usage, sheet };
    };
  }

  /** To be made while usage is read: it takes about as long. */
  private sheet(period: BillingPeriod, subject: ReportSubject, pace: Pace): Promise<ReportSheet> {
    return ReportSheet.of(this.settings.currency, period, subject, pace);
  }
}

async function ungrouped({ usage, sheet }: ReadReport, pace: Pace): Promise<Json<BillingReport>> {
  const lines = await usage.lines.rate(pace);
  const resources = await usage.resources.rate(pace);
  return sheet.report(await roundTree([{ lines }], pace), resources, pace);
}
