import type { CallContext } from '@atoll/contracts';
import type {
  BilledInstance,
  InstancesReport,
  TeamBillingQuery,
  WorkspaceBillingQuery,
} from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readPeriod, type BillingPeriod } from '../calendar/billing-range.js';
import type { Pace } from '@atoll/waiting';
import type { CatalogueFilter } from './catalogue.js';
import { FactDetails } from './fact-details.js';
import { JsonWriter } from './json-writer.js';
import { unitHoursOf } from './rated-usage.js';
import { ReportAccess, zoneOf, type ReportSubject } from './report-access.js';
import { ReportQueue } from './report-queue.js';
import { ReportSheet } from './report-sheet.js';
import { groupsOf, UsageReader } from './report-usage.js';
import { Resources } from './resources.js';
import { roundTree } from './rounding-tree.js';

const instances: CatalogueFilter = { kinds: ['pod', 'vm', 'baremetal'] };

/** Pods, VMs and bare-metal hosts, each by itself. */
@Injectable()
export class InstanceReportsService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly access: ReportAccess,
    private readonly queue: ReportQueue,
    private readonly usage: UsageReader,
    private readonly resources: Resources,
    private readonly details: FactDetails,
  ) {}

  async ofTeam(query: TeamBillingQuery, context: CallContext): Promise<Json<InstancesReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    this.access.requireTeam(context.caller, query.team_id);
    return this.queue.run(query.team_id, context, async (pace) =>
      this.report(period, await this.access.team(query.team_id, pace, undefined, instances), pace),
    );
  }

  async ofWorkspace(query: WorkspaceBillingQuery, context: CallContext): Promise<Json<InstancesReport>> {
    const period = readPeriod(query, zoneOf(context.caller));
    const workspace = await this.access.requireWorkspace(context.caller, query.workspace_id);
    return this.queue.run(workspace.teamId, context, async (pace) =>
      this.report(period, await this.access.workspace(workspace, pace, instances), pace),
    );
  }

  private async report(period: BillingPeriod, subject: ReportSubject, pace: Pace): Promise<Json<InstancesReport>> {
    const question = { ...subject, bounds: period.bounds, groupBy: 'workspaceId' } as const;
    const [lines, sheet] = await Promise.all([
      this.usage.byResource(question, pace),
      ReportSheet.of(this.settings.currency, period, subject, pace),
    ]);
    const rounded = await roundTree(await groupsOf(lines, pace), pace);
    const groups = await pace.map(rounded, (group) => ({ ...group, ...placeOf(group.id) }));
    const names = await this.resources.workspaceNames(
      groups.map(({ workspaceId }) => workspaceId),
      pace,
    );
    const details = await this.details.volumes(subject.teamNo, groups, pace);
    const writer = new JsonWriter();
    await sheet.writeReport(writer, groups, lines, pace);
    writer.text(',"instances":');
    await writer.list(groups, pace, async (group, n) => {
      const { workspaceId, resourceId } = group;
      const head: Omit<BilledInstance, 'total_cost' | 'intervals'> = {
        instance_id: resourceId.replace(/^[a-z]+:/, ''),
        kind: group.lines[0]?.kind as BilledInstance['kind'],
        name: details[n]?.name ?? null,
        workspace_id: workspaceId,
        workspace_name: names.get(workspaceId) ?? null,
        unit_hours: await unitHoursOf(group.lines, pace),
      };
      writer.startObject(head);
      await sheet.writeCosts(writer, group, pace);
      writer.text('}');
    });
    writer.text('}');
    return writer.end();
  }
}

/** Of the id of a group: a workspace, a space, a resource, in which spaces may be. */
function placeOf(id: string): { workspaceId: string; resourceId: string } {
  const at = id.indexOf(' ');
  return { workspaceId: id.slice(0, at), resourceId: id.slice(at + 1) };
}
