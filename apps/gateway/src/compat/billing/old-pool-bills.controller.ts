import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiExtraModels, ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { billingReports, type BilledPool } from '@atoll/contracts/billing';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { exactNumber, nanoOf, zero } from '../http/exact.js';
import { OldPoolsBill, OldStorageBill, PoolBill, PoolInterval, StorageInterval } from './old-bills.js';
import { OldZoneAndRegion, TeamRange } from './old-range.js';
import { askReport, OldReport, usedByInterval, type Used } from './reports.js';
import { poolNames, volumeNames } from './report-names.js';

/** All boards are of one vendor. */
const vendor = 'NVIDIA';

/** What is not in the bill of the instances. */
@ApiTags('Billing')
@ApiExtraModels(PoolBill, PoolInterval, StorageInterval)
@Controller('team-billing')
export class OldPoolBillsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('gpuaas-pool/:team_id/:start_date/:end_date/:interval')
  @OldReport(OldPoolsBill, 'Get the bill of a team by GPU pool')
  async getTeamPoolBill(
    @Param() range: TeamRange,
    @Query() query: OldZoneAndRegion,
    @Context() context: CallContext,
  ): Promise<OldPoolsBill> {
    const report = await askReport(
      this.rpc,
      billingReports.pools,
      { ...range, ...query, region_id: query.region_id ?? 'all' },
      context,
    );
    const names = poolNames(report);
    const details = report.pools.map((pool, at): [string, PoolBill] => {
      const intervals = usedByInterval(pool, range.interval).map(([key, used]): [string, PoolInterval] => [
        key,
        poolInterval(used),
      ]);
      return [
        names[at] ?? '',
        { model_type: boardOf(pool), vendor_type: vendor, intervals: Object.fromEntries(intervals) },
      ];
    });
    return { total_cost: exactNumber(nanoOf(report.total_cost)), details: Object.fromEntries(details) };
  }

  @Get('shared-storage/:team_id/:start_date/:end_date/:interval')
  @OldReport(OldStorageBill, 'Get the bill of a team by shared volume')
  async getTeamStorageBill(
    @Param() range: TeamRange,
    @Query() query: OldZoneAndRegion,
    @Context() context: CallContext,
  ): Promise<OldStorageBill> {
    const report = await askReport(
      this.rpc,
      billingReports.storage,
      { ...range, ...query, region_id: query.region_id ?? 'all' },
      context,
    );
    const names = volumeNames(report);
    const details = report.volumes.map((volume, at): [string, Record<string, StorageInterval>] => {
      const intervals = usedByInterval(volume, range.interval).map(
        ([key, { costNano, hoursNano }]): [string, StorageInterval] => [
          key,
          { cost: exactNumber(costNano), hours: exactNumber(hoursNano) },
        ],
      );
      return [names[at] ?? '', Object.fromEntries(intervals)];
    });
    return { total_cost: exactNumber(nanoOf(report.total_cost)), details: Object.fromEntries(details) };
  }
}

function poolInterval({ costNano, hoursNano }: Used): PoolInterval {
  const cost = exactNumber(costNano);
  const none = { cost: zero };
  return {
    interval_cost: cost,
    interval_hours: exactNumber(hoursNano),
    SubscriptionRate: { cost },
    GPU: none,
    vRAM: none,
    CPU: none,
    RAM: none,
    EphimeralStorage: none,
  };
}

/** `A100-80GB` of `gpu.A100-80GB.1g.10gb`; empty where the SKU does not say. */
function boardOf({ intervals }: BilledPool): string {
  const sku = intervals.find(({ items }) => items.length > 0)?.items[0]?.sku ?? '';
  return /^gpu\.([^.]+)\./.exec(sku)?.[1] ?? '';
}
