import type { CallContext } from '@atoll/contracts';
import type {
  BilledWorkspace,
  BillingRange,
  BillingReport,
  PoolsReport,
  RatedPoolsReport,
  RegionalReportQuery,
  TeamReportQuery,
  WorkspaceReportQuery,
  WorkspacesReport,
} from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod } from '../calendar/billing-range.js';
import type { Pace } from '@atoll/waiting';
import type { CatalogueFilter } from './catalogue.js';
import { FactDetails } from './fact-details.js';
import { headOfPool, subscriptionsOf, writeSubscriptions } from './pools.js';
import { profileZone, ReportMaker, type ReadOf } from './report-maker.js';
import { ReportSheet, type Head } from './report-sheet.js';
import { groupsOf, UsageReader, type ReportUsage, type UsageQuestion } from './report-usage.js';
import { roundTree } from './rounding-tree.js';
import { workspaceNames } from './workspace-names.js';

const pools: CatalogueFilter = { kinds: ['gpuaas_pool'] };

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
    return this.maker.ofTeam(query, context, { read: this.reading(query, context), write: ungrouped });
  }

  async workspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<BillingReport>> {
    return this.maker.ofWorkspace(query, context, { read: this.reading(query, context), write: ungrouped });
  }

  async byWorkspace(query: TeamReportQuery, context: CallContext): Promise<Json<WorkspacesReport>> {
    const readUsage = this.reading(query, context, 'workspaceId');
    return this.maker.ofTeam(query, context, {
      read: async (subject, snapshot, pace) => {
        const read = await readUsage(subject, snapshot, pace);
        const ids = await read.usage.lines.groups(pace);
        return { ...read, names: await workspaceNames(snapshot, ids, pace) };
      },
      write: async ({ usage, sheet, names }, pace) => {
        const lines = await usage.lines.rate(pace);
        // By name, then id: a line break goes before whatever a name has in it.
        const orderOf = (id: string) => `${names.get(id) ?? ''}\n${id}`;
        const groups = await roundTree(await groupsOf(lines, pace, { orderOf }), pace);
        return sheet.report(groups, await usage.resources.rate(pace), pace, {
          name: 'workspaces',
          headOf: ({ id }): Head<BilledWorkspace> => ({ workspace_id: id, workspace_name: names.get(id) ?? null }),
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

  private async ofPools<Report>(
    query: RegionalReportQuery,
    context: CallContext,
    shown: { isRated: boolean },
  ): Promise<Json<Report>> {
    const readUsage = this.reading(query, context, 'poolId');
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
          headOf: (group) => {
            const inside = { details: ofPools.get(group.id), subscriptions: byPool.get(group.id) ?? [], ...shown };
            return headOfPool(group, inside, pace);
          },
          writeRest: (writer, group) => writeSubscriptions(writer, group, byPool.get(group.id) ?? [], pace),
        });
      },
    });
  }

  /** Reads usage by line, and makes the sheet meanwhile: it takes about as long. */
  private reading(query: BillingRange, context: CallContext, groupBy?: UsageQuestion['groupBy']): ReadOf<ReadReport> {
    const period = readPeriod(query, profileZone(context));
    return async (subject, snapshot, pace) => {
      const question = { ...subject, bounds: period.bounds, ...(groupBy && { groupBy }) };
      const [usage, sheet] = await Promise.all([
        new UsageReader(snapshot).byLine(question, pace),
        ReportSheet.of(this.settings.currency, period, subject, pace),
      ]);
      return { usage, sheet };
    };
  }
}

async function ungrouped({ usage, sheet }: ReadReport, pace: Pace): Promise<Json<BillingReport>> {
  const lines = await usage.lines.rate(pace);
  const resources = await usage.resources.rate(pace);
  return sheet.report(await roundTree([{ lines }], pace), resources, pace);
}
