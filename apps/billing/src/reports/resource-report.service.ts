import type { CallContext } from '@atoll/contracts';
import type {
  BilledInstance,
  BilledVolume,
  BillingRange,
  InstancesReport,
  RegionalReportQuery,
  StorageReport,
  TeamReportQuery,
  WorkspaceReportQuery,
} from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import type { Pace } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod } from '../calendar/billing-range.js';
import type { CatalogueFilter } from './catalogue.js';
import { FactDetails, type ResourceDetails } from './fact-details.js';
import { unitHoursOf } from './rated-usage.js';
import { profileZone, ReportMaker, type ReadOf, type ReportPlan } from './report-maker.js';
import { ReportSheet, type Head } from './report-sheet.js';
import { groupsOf, UsageReader, type Group, type UsageQuestion } from './report-usage.js';
import { roundTree } from './rounding-tree.js';
import { placedId, type PlacedResource, type ResourceLine, type UnratedResources } from './unrated-usage.js';
import { workspaceNames } from './workspace-names.js';

const instances: CatalogueFilter = { kinds: ['pod', 'vm', 'baremetal'] };
const volumes: CatalogueFilter = { kinds: ['shared_storage'] };

/** Of a report: nothing more is read for it. */
interface ReadResources {
  usage: UnratedResources;
  sheet: ReportSheet;
  placed: readonly PlacedResource[];
  /** By `placedId`. */
  details: ReadonlyMap<string, ResourceDetails>;
}

/** Pods, VMs and bare-metal hosts, and shared volumes, each by itself. */
@Injectable()
export class ResourceReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly maker: ReportMaker,
  ) {}

  async instancesOfTeam(query: TeamReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    return this.maker.ofTeam(query, context, this.ofInstances(query, context));
  }

  async instancesOfWorkspace(query: WorkspaceReportQuery, context: CallContext): Promise<Json<InstancesReport>> {
    return this.maker.ofWorkspace(query, context, this.ofInstances(query, context));
  }

  async storage(query: RegionalReportQuery, context: CallContext): Promise<Json<StorageReport>> {
    return this.maker.ofTeam(query, context, {
      filter: volumes,
      read: this.reading(query, context),
      write: (read, pace) =>
        report<StorageReport>(read, pace, 'volumes', async ({ id, lines }): Promise<Head<BilledVolume>> => {
          const { name = null, regionId = null, usedSizeInGb = null } = read.details.get(id) ?? {};
          return {
            volume_id: (lines[0]?.resourceId ?? '').replace(/^shared_storage:/, ''),
            name,
            region_id: regionId,
            used_size_in_gb: usedSizeInGb,
            gb_hours: await unitHoursOf(lines, pace),
          };
        }),
    });
  }

  private ofInstances(query: BillingRange, context: CallContext) {
    const readResources = this.reading(query, context, 'workspaceId');
    const plan: ReportPlan<ReadResources & { names: ReadonlyMap<string, string> }, Json<InstancesReport>> = {
      filter: instances,
      read: async (subject, snapshot, pace) => {
        const read = await readResources(subject, snapshot, pace);
        const workspaceIds = read.placed.map(({ group }) => group);
        return { ...read, names: await workspaceNames(snapshot, workspaceIds, pace) };
      },
      write: ({ names, ...read }, pace) =>
        report(read, pace, 'instances', async ({ id, lines }): Promise<Head<BilledInstance>> => {
          const [{ group: workspaceId = '', resourceId = '', kind } = {}] = lines;
          return {
            instance_id: resourceId.replace(/^[a-z]+:/, ''),
            kind: kind as BilledInstance['kind'],
            name: read.details.get(id)?.name ?? null,
            workspace_id: workspaceId,
            workspace_name: names.get(workspaceId) ?? null,
            unit_hours: await unitHoursOf(lines, pace),
          };
        }),
    };
    return plan;
  }

  private reading(
    query: BillingRange,
    context: CallContext,
    groupBy?: UsageQuestion['groupBy'],
  ): ReadOf<ReadResources> {
    const period = readPeriod(query, profileZone(context));
    return async (subject, snapshot, pace) => {
      const question = { ...subject, bounds: period.bounds, ...(groupBy && { groupBy }) };
      const [usage, sheet] = await Promise.all([
        new UsageReader(snapshot).byResource(question, pace),
        ReportSheet.of(this.settings.currency, period, subject, pace),
      ]);
      const placed = await usage.placed(pace);
      const details = await new FactDetails(snapshot).resources(subject.teamNo, placed, pace);
      return { usage, sheet, placed, details };
    };
  }
}

async function report<Report>(
  { usage, sheet }: ReadResources,
  pace: Pace,
  name: string,
  headOf: (group: Group<ResourceLine>) => Promise<object>,
): Promise<Json<Report>> {
  const lines = await usage.rate(pace);
  const groups = await roundTree(await groupsOf(lines, pace, { idOf: placedId }), pace);
  return sheet.report(groups, lines, pace, { name, headOf });
}
