import { type UserCaller } from '@atoll/contracts';
import {
  billingReports,
  instanceReports,
  prices,
  usage,
  type BillingInterval,
  type BillingReport,
  type ComparisonReport,
  type InstancesReport,
  type PoolsReport,
  type RatedPoolsReport,
  type StorageReport,
  type UsageEvent,
  type WorkspacesReport,
} from '@atoll/contracts/billing';
import type { BillingFixture, ToldTeam } from '../billing-fixture.js';

let sequence = 0;

/** When, and how much from then on. */
export type Step = readonly [time: string, quantity: number | string];

/** Dates stand for their midnight. */
export interface Asked {
  from: string;
  to: string;
  interval?: BillingInterval;
  /** Asks for the zone of the caller’s profile, which is this one. */
  zone?: string;
  region?: string;
  /** The instant up to which usage is counted. */
  asOf?: string;
}

/**
 * A team and what it uses, for examples of bills. SKUs are the team’s alone, so that general prices of one example do
 * not reach another.
 */
export class BilledTeam {
  private readonly run = (sequence += 1);

  private constructor(
    private readonly billing: BillingFixture,
    private readonly told: ToldTeam,
  ) {}

  static async of(billing: BillingFixture, ...workspaceNames: string[]): Promise<BilledTeam> {
    return new BilledTeam(billing, await billing.team(...workspaceNames));
  }

  get id(): string {
    return this.told.team_id;
  }

  workspace(name = 'default'): string {
    const workspace = this.told.workspaces.find((one) => one.name === name);
    if (!workspace) throw new Error(`The team has no workspace ${name}.`);
    return workspace.id;
  }

  sku(name: string): string {
    return `${name}.of-${this.run}`;
  }

  /** A VM holds so many units of the SKU from each time on, unless `more` says otherwise. */
  async holds(
    sku: string,
    steps: readonly Step[],
    { resource_id = 'vm:1', ...more }: Partial<UsageEvent> = {},
  ): Promise<void> {
    const events = steps.map(([time, quantity]): UsageEvent => ({
      source: 'example',
      id: `${(sequence += 1)}`,
      time: instant(time),
      resource_id,
      kind: 'vm',
      sku: this.sku(sku),
      quantity: String(quantity),
      team_id: this.id,
      workspace_id: this.workspace(),
      ...more,
    }));
    await this.billing.call(usage.record, { events });
  }

  /** A unit of the SKU costs so much an hour from then on: everybody, or this team. */
  async price(sku: string, unit_price: string, from: string, whom: 'everybody' | 'team' = 'everybody'): Promise<void> {
    const price = { sku: this.sku(sku), unit: 'unit', unit_price, valid_from: instant(from), force: true };
    await this.billing.call(prices.create, { ...price, ...(whom === 'team' && { team_id: this.id }) });
  }

  report(asked: Asked): Promise<BillingReport> {
    return this.billing.call(billingReports.team, this.query(asked), callerOf(asked));
  }

  ofWorkspace(name: string, asked: Asked): Promise<BillingReport> {
    return this.billing.call(
      billingReports.workspace,
      { ...range(asked), workspace_id: this.workspace(name) },
      callerOf(asked),
    );
  }

  byWorkspace(asked: Asked): Promise<WorkspacesReport> {
    return this.billing.call(billingReports.byWorkspace, this.query(asked), callerOf(asked));
  }

  pools({ region = 'all', ...asked }: Asked): Promise<PoolsReport> {
    return this.billing.call(billingReports.pools, { ...this.query(asked), region_id: region }, callerOf(asked));
  }

  ratedPools({ region = 'all', ...asked }: Asked): Promise<RatedPoolsReport> {
    return this.billing.call(billingReports.ratedPools, { ...this.query(asked), region_id: region }, callerOf(asked));
  }

  storage({ region = 'all', ...asked }: Asked): Promise<StorageReport> {
    return this.billing.call(billingReports.storage, { ...this.query(asked), region_id: region }, callerOf(asked));
  }

  instances(asked: Asked): Promise<InstancesReport> {
    return this.billing.call(instanceReports.ofTeam, this.query(asked), callerOf(asked));
  }

  instancesOf(name: string, asked: Asked): Promise<InstancesReport> {
    return this.billing.call(
      instanceReports.ofWorkspace,
      { ...range(asked), workspace_id: this.workspace(name) },
      callerOf(asked),
    );
  }

  compare(start_month: string, end_month: string): Promise<ComparisonReport> {
    return this.billing.call(billingReports.comparison, { team_id: this.id, start_month, end_month });
  }

  private query(asked: Asked) {
    return { ...range(asked), team_id: this.id };
  }
}

function range({ from, to, interval = 'daily', zone, asOf }: Asked) {
  const dates = { start_date: wall(from), end_date: wall(to), interval };
  return { ...dates, ...(zone && { timezone: 'local' as const }), ...(asOf && { as_of: asOf }) };
}

function callerOf({ zone = 'UTC' }: Asked): Partial<UserCaller> {
  return { platformAdmin: true, timezone: zone };
}

const wall = (date: string) => (date.length === 10 ? `${date}T00:00:00` : date);
const instant = (time: string) => `${wall(time)}Z`;

/** Start, cost, and unit-hours of each bucket’s only item. */
export function brief({ intervals }: Pick<BillingReport, 'intervals'>): [string, string, number?][] {
  return intervals.map(({ start, cost, items: [item] }) => (item ? [start, cost, item.unit_hours] : [start, cost]));
}
