import type { CallContext } from '@atoll/contracts';
import type { BilledInstance, InstancesReport, TeamReportQuery, WorkspaceReportQuery } from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import type { Pace } from '@atoll/waiting';
import type { CatalogueFilter } from './catalogue.js';
import { FactDetails, type VolumeDetails } from './fact-details.js';
import { unitHoursOf } from './rated-usage.js';
import { ReportMaker, zoneOf, type ReadOf } from './report-maker.js';
import { ReportSheet } from './report-sheet.js';
import { groupsOf, UsageReader } from './report-usage.js';
import { Resources } from './resources.js';
import { roundTree } from './rounding-tree.js';
import { placedId, type UnratedResources } from './unrated-usage.js';

const instances: CatalogueFilter = { kinds: ['pod', 'vm', 'baremetal'] };

/** Of a report: nothing more is read for it. */
interface ReadInstances {
  usage: UnratedResources;
  sheet: ReportSheet;
  /** Of workspaces, by id. */
  names: ReadonlyMap<string, string>;
  /** By `placedId`. */
  details: ReadonlyMap<string, VolumeDetails>;
}

/** Pods, VMs and bare-metal hosts, each by itself. */
@Injectable()
export class InstanceReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly maker: ReportMaker,
  ) {}

  async ofTeam(query: TeamReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    const read = this.reading(readPeriod(query, zoneOf(context.caller)));
    return this.maker.ofTeam(query, context, { filter: instances, read, write: report });
  }

  async ofWorkspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    const read = this.reading(readPeriod(query, zoneOf(context.caller)));
    return this.maker.ofWorkspace(query, context, { filter: instances, read, write: report });
  }

  private reading(period: BillingPeriod): ReadOf<ReadInstances> {
    return async (subject, snapshot, pace) => {
      const question = { ...subject, bounds: period.bounds, groupBy: 'workspaceId' } as const;
      const [usage, sheet] = await Promise.all([
        new UsageReader(snapshot).byResource(question, pace),
        ReportSheet.of(this.settings.currency, period, subject, pace),
      ]);
      const placed = await usage.placed(pace);
      const workspaceIds = placed.map(({ group }) => group);
      const names = await new Resources(snapshot).workspaceNames(workspaceIds, pace);
      const details = await new FactDetails(snapshot).volumes(subject.teamNo, placed, pace);
      return { usage, sheet, names, details };
    };
  }
}

async function report({ usage, sheet, names, details }: ReadInstances, pace: Pace): Promise<Json<InstancesReport>> {
  const lines = await usage.rate(pace);
  const groups = await roundTree(await groupsOf(lines, pace, { idOf: placedId }), pace);
  return sheet.report(groups, lines, pace, {
    name: 'instances',
    write: async (writer, group) => {
      const [{ group: workspaceId = '', resourceId = '', kind } = {}] = group.lines;
      const head: Omit<BilledInstance, 'total_cost' | 'intervals'> = {
        instance_id: resourceId.replace(/^[a-z]+:/, ''),
        kind: kind as BilledInstance['kind'],
        name: details.get(group.id)?.name ?? null,
        workspace_id: workspaceId,
        workspace_name: names.get(workspaceId) ?? null,
        unit_hours: await unitHoursOf(group.lines, pace),
      };
      writer.startObject(head);
      await sheet.writeCosts(writer, group, pace);
      writer.text('}');
    },
  });
}
