import { contract, operation } from '../contract.js';
import { ListOf, OneOf, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { TeamReportQuery, WorkspaceReportQuery } from './query.js';
import { BilledGroup, BillingReport, Quantity } from './report.js';

const instanceKinds = ['pod', 'vm', 'baremetal'] as const;

/** What one pod, VM or bare-metal host used in one workspace. */
export class BilledInstance extends BilledGroup {
  @Text({ max: 200, example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  instance_id!: string;

  @OneOf('InstanceKind', instanceKinds)
  kind!: (typeof instanceKinds)[number];

  @Text({ max: 200, nullable: true })
  name!: string | null;

  @Uuid()
  workspace_id!: string;

  @Text({ max: 100, nullable: true })
  workspace_name!: string | null;

  @Quantity('Units held × hours.')
  unit_hours!: number;
}

/** Usage of pods, VMs and bare-metal hosts, each listed separately; other kinds are left out. */
export class InstancesReport extends BillingReport {
  @ListOf(() => BilledInstance, { max: 200_000 })
  instances!: BilledInstance[];
}

/** What the compatibility mount needs of many instances at once. Permissions as of the other reports. */
export const instanceReports = contract('billing.instance_reports', {
  ofTeam: operation(TeamReportQuery, InstancesReport),
  ofWorkspace: operation(WorkspaceReportQuery, InstancesReport),
});
