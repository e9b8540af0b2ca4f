import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiExtraModels, ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  billingReports,
  instanceReports,
  type BillingReport,
  type InstancesReport,
  type ReportInstant,
} from '@atoll/contracts/billing';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { exactNumber, nanoOf, quantityNanoOf, zero } from '../http/exact.js';
import {
  OldBill,
  OldCost,
  OldInstanceIntervals,
  OldSummary,
  OldWorkspaceBill,
  OldWorkspacesBill,
  ResourceCosts,
  resourceCosts,
} from './old-bills.js';
import { OldZone, TeamRange, TeamTimes, WorkspaceRange } from './old-range.js';
import { withoutInterval } from './report-faults.js';
import { askReport, hoursNanoOf, OldReport, symbolOf, uniqueNames, usedByInterval } from './reports.js';
import { poolNames, volumeNames } from './report-names.js';

const defaultPolicy = 'default';
/** For totals, of which the intervals do not matter: it may be the longest range. */
const asOneTotal = { interval: 'monthly' } as const;

@ApiTags('Billing')
@ApiExtraModels(OldCost, ResourceCosts, OldInstanceIntervals, OldWorkspaceBill)
@Controller()
export class OldBillsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('team-billing/:team_id/:start_date/:end_date/:interval')
  @OldReport(OldBill, 'Get the bill of a team')
  async getTeamBill(
    @Param() range: TeamRange,
    @Query() zone: OldZone,
    @Context() context: CallContext,
  ): Promise<OldBill> {
    const asked = { ...range, ...zone, ...asOneTotal, ...(await this.now(context)) };
    const [bill, instances] = await Promise.all([
      askReport(this.rpc, billingReports.team, asked, context, withoutInterval),
      askReport(this.rpc, instanceReports.ofTeam, asked, context, withoutInterval),
    ]);
    return billOf(bill, instances);
  }

  @Get('workspace-billing/:workspace_id/:start_date/:end_date/:interval')
  @OldReport(OldBill, 'Get the bill of a workspace')
  async getWorkspaceBill(
    @Param() range: WorkspaceRange,
    @Query() zone: OldZone,
    @Context() context: CallContext,
  ): Promise<OldBill> {
    const asked = { ...range, ...zone, ...asOneTotal, ...(await this.now(context)) };
    const [bill, instances] = await Promise.all([
      askReport(this.rpc, billingReports.workspace, asked, context, withoutInterval),
      askReport(this.rpc, instanceReports.ofWorkspace, asked, context, withoutInterval),
    ]);
    return billOf(bill, instances);
  }

  @Get('team-billing/summary/:team_id/:start_date/:end_date')
  @OldReport(OldSummary, 'Get the bill of a team by kind')
  async getTeamSummary(
    @Param() times: TeamTimes,
    @Query() zone: OldZone,
    @Context() context: CallContext,
  ): Promise<OldSummary> {
    const asked = { ...times, ...zone, ...asOneTotal, ...(await this.now(context)) };
    const everywhere = { ...asked, region_id: 'all' };
    const [instances, pools, storage] = await Promise.all([
      askReport(this.rpc, instanceReports.ofTeam, asked, context, withoutInterval),
      askReport(this.rpc, billingReports.ratedPools, everywhere, context, withoutInterval),
      askReport(this.rpc, billingReports.storage, everywhere, context, withoutInterval),
    ]);
    const totalNano = [instances, pools, storage].reduce((sum, { total_cost }) => sum + nanoOf(total_cost), 0n);
    const poolHoursNano = pools.pools.reduce((sum, { vgpu_hours }) => sum + quantityNanoOf(vgpu_hours), 0n);
    const instanceHoursNano = hoursNanoOf(instances.instances);
    const [namesOfPools, namesOfVolumes] = [poolNames(pools), volumeNames(storage)];
    return {
      total_cost: exactNumber(totalNano),
      total_hours: exactNumber(poolHoursNano + instanceHoursNano),
      pool_hours: exactNumber(poolHoursNano),
      instance_hours: exactNumber(instanceHoursNano),
      monthly_base_cost: zero,
      currency: { code: pools.currency, symbol: symbolOf(pools.currency) },
      gpuaas_summary: pools.pools.map(({ total_cost, vgpu_hours, vgpu_hour_cost }, at) => ({
        pool_name: namesOfPools[at] ?? '',
        pool_hours: exactNumber(quantityNanoOf(vgpu_hours)),
        total: exactNumber(nanoOf(total_cost)),
        subscription_rate: exactNumber(nanoOf(vgpu_hour_cost)),
      })),
      shared_storage_billing_summary: storage.volumes.map(({ total_cost, gb_hours }, at) => ({
        storage_name: namesOfVolumes[at] ?? '',
        hours: exactNumber(quantityNanoOf(gb_hours)),
        cost: exactNumber(nanoOf(total_cost)),
      })),
      instance_billing_summary: instancesOf(instances).map(({ instance_name, hours, cost }) => ({
        instance_name,
        hours,
        cost,
      })),
    };
  }

  @Get('team-billing/group-by-workspace/:team_id/:start_date/:end_date/:interval')
  @OldReport(
    OldWorkspacesBill,
    'Get the bill of a team by workspace',
    'Instances by workspace and interval, and what the range cost in all.',
  )
  async getTeamBillByWorkspace(
    @Param() range: TeamRange,
    @Query() zone: OldZone,
    @Context() context: CallContext,
  ): Promise<OldWorkspacesBill> {
    const asked = { ...range, ...zone, ...(await this.now(context)) };
    const [instances, bill] = await Promise.all([
      askReport(this.rpc, instanceReports.ofTeam, asked, context),
      askReport(this.rpc, billingReports.team, { ...asked, ...asOneTotal }, context, withoutInterval),
    ]);
    return {
      billing_by_workspace: workspacesOf(instances),
      currency_code: bill.currency,
      currency_symbol: symbolOf(bill.currency),
      pricing_policy: defaultPolicy,
      resource_policy: defaultPolicy,
      monthly_cost: zero,
      current_month_total_cost: exactNumber(nanoOf(bill.total_cost)),
    };
  }

  /** Up to where all reports of one answer are counted: each by itself would be later than the one before. */
  private now(context: CallContext): Promise<ReportInstant> {
    return this.rpc.call(billingReports.now, {}, context);
  }
}

function billOf(bill: BillingReport, instances: InstancesReport): OldBill {
  const counted = bill.intervals.flatMap(({ items }) => items.filter(({ kind }) => kind !== 'shared_storage'));
  return {
    total_cost: exactNumber(nanoOf(bill.total_cost)),
    total_hours: exactNumber(hoursNanoOf(counted)),
    currency: bill.currency,
    instances: instancesOf(instances),
  };
}

function instancesOf({ instances }: InstancesReport): OldBill['instances'] {
  return instances.map(({ instance_id, name, unit_hours, total_cost }) => ({
    instance_id,
    instance_name: name ?? instance_id,
    hours: exactNumber(quantityNanoOf(unit_hours)),
    cost: exactNumber(nanoOf(total_cost)),
  }));
}

function workspacesOf({ instances, interval }: InstancesReport): OldWorkspacesBill['billing_by_workspace'] {
  const byWorkspace = Map.groupBy(instances, ({ workspace_id }) => workspace_id);
  return Object.fromEntries(
    [...byWorkspace].map(([id, inside]) => {
      const ids = uniqueNames(inside.map(({ instance_id, kind }) => ({ name: instance_id, id: kind })));
      const entries = inside.map((instance, at): [string, OldInstanceIntervals] => {
        const intervals = usedByInterval(instance, interval).map(([key, { costNano }]) => [
          key,
          resourceCosts(exactNumber(costNano), zero),
        ]);
        const bill = {
          total_cost: exactNumber(nanoOf(instance.total_cost)),
          intervals: Object.fromEntries(intervals) as OldInstanceIntervals['intervals'],
        };
        return [ids[at] ?? instance.instance_id, { instance_name: instance.name ?? instance.instance_id, ...bill }];
      });
      return [id, { workspace_name: inside[0]?.workspace_name ?? '', instances: Object.fromEntries(entries) }];
    }),
  );
}
