import type { CallContext, ComparisonQuery, ComparisonReport } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { readMonths, type Month } from '../calendar/billing-range.js';
import { billedMonth, changeBetween, monthOf } from './comparison.js';
import { ReportAccess, zoneOf } from './report-access.js';
import { UsageReader } from './report-usage.js';

/** Two months of a team, side by side. */
@Injectable()
export class ComparisonService {
  constructor(
    private readonly settings: BillingSettings,
    private readonly access: ReportAccess,
    private readonly usage: UsageReader,
  ) {}

  async compare(query: ComparisonQuery, { caller }: CallContext): Promise<ComparisonReport> {
    const months = readMonths(query, zoneOf(caller));
    const subject = await this.access.team(caller, query.team_id);
    const usageOf = ({ startMs, endMs }: Month) => this.usage.byLine({ ...subject, bounds: [startMs, endMs] });
    const usages = await Promise.all([usageOf(months.start), usageOf(months.end)]);
    const [start, end] = [monthOf(usages[0].lines), monthOf(usages[1].lines)];
    return {
      scope: subject.scope,
      currency: this.settings.currency,
      timezone: months.zone.name,
      as_of: new Date(subject.catalogue.asOfMs).toISOString(),
      start_month: billedMonth(query.start_month, start),
      end_month: billedMonth(query.end_month, end),
      ...changeBetween(start, end),
    };
  }
}
