import type { CallContext } from '@atoll/contracts';
import type { ComparisonQuery, ComparisonReport } from '@atoll/contracts/billing';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readMonths, type Month } from '../calendar/billing-range.js';
import { billedMonth, changeBetween, monthOf } from './comparison.js';
import { profileZone, ReportMaker } from './report-maker.js';
import { UsageReader } from './report-usage.js';

/** Two months of a team, side by side. */
@Injectable()
export class ComparisonService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly maker: ReportMaker,
  ) {}

  async compare(query: ComparisonQuery, context: CallContext): Promise<ComparisonReport> {
    const months = readMonths(query, profileZone(context));
    return this.maker.ofTeam(query, context, {
      read: async (subject, snapshot, pace) => {
        const reader = new UsageReader(snapshot);
        const usageOf = ({ startMs, endMs }: Month) => reader.byLine({ ...subject, bounds: [startMs, endMs] }, pace);
        return { ...subject, usages: await Promise.all([usageOf(months.start), usageOf(months.end)]) };
      },
      write: async ({ scope, catalogue, usages }, pace) => {
        const [start, end] = [await monthOf(usages[0].lines, pace), await monthOf(usages[1].lines, pace)];
        return {
          scope,
          currency: this.settings.currency,
          timezone: months.zone.name,
          as_of: new Date(catalogue.asOfMs).toISOString(),
          start_month: billedMonth(query.start_month, start),
          end_month: billedMonth(query.end_month, end),
          ...changeBetween(start, end),
        };
      },
    });
  }
}
