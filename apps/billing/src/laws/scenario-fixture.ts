import { array, bigInt, boolean, constantFrom, integer, nat, oneof, record, type Arbitrary } from 'fast-check';
import { prices, usage, type UsageEvent } from '@atoll/contracts/billing';
import { type BillingFixture, memberOf, type ToldTeam } from '../billing-fixture.js';
import { localMs, wallText, type Interval } from './local-time-fixture.js';
import type { OracleFact, OraclePrice } from './oracle-fixture.js';

const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;

/** Which facts, prices and range: drawn without ids, which each run makes its own. */
export interface Draft {
  interval: Interval;
  /** A wall-clock time to the second, in whatever zone is asked. */
  startWall: number;
  lengthSeconds: number;
  facts: DraftFact[];
  prices: DraftPrice[];
}

interface DraftFact {
  at: number;
  resource: number;
  quantityNano: bigint;
  workspace: number;
  region: number;
  sequence: number;
  source: string;
}

interface DraftPrice {
  at: number;
  resource: number;
  ofTeam: boolean;
  priceNano: bigint;
}

/**
 * A place in time, as a part of the range from a little before it to a little after: on the bounds and hours, and
 * anywhere.
 */
const place: Arbitrary<number> = oneof(
  integer({ min: -2 * 96, max: 4 * 96 }).map((quarters) => quarters * 15 * 60_000),
  integer({ min: -2 * dayMs, max: 60 * dayMs }),
  constantFrom(0, -1, 1, hourMs, hourMs - 1, dayMs),
);
const nano = (max: bigint) => oneof(constantFrom(0n, 1n, 1_000_000_000n, 333_333_333n), bigInt({ min: 0n, max }));

const lengths: Record<Interval, number> = { hourly: 3, daily: 40, weekly: 90, monthly: 200 };

/** `startWall` is drawn around `aroundMs` where given (a transition), else from all of 2015 to the middle of 2026. */
export function draftOf(aroundMs?: number): Arbitrary<Draft> {
  const start =
    aroundMs === undefined
      ? integer({ min: Date.UTC(2015, 0, 2) / 1000, max: Date.UTC(2026, 3, 1) / 1000 })
      : integer({ min: aroundMs / 1000 - 2 * 86_400, max: aroundMs / 1000 });
  const seconds = oneof(
    start,
    start.map((at) => at - (at % 900)),
    start.map((at) => at - (at % 86_400)),
  );
  return constantFrom<Interval>('hourly', 'daily', 'weekly', 'monthly').chain((interval) =>
    record({
      interval: constantFrom(interval),
      startWall: seconds.map((at) => at * 1000),
      lengthSeconds: oneof(
        integer({ min: 90_000, max: lengths[interval] * 86_400 }),
        integer({ min: 2, max: lengths[interval] }).map((days) => days * 86_400),
      ),
      facts: array(
        record({
          at: place,
          resource: nat(3),
          quantityNano: nano(1_000_000_000_000_000_000n),
          workspace: nat(1),
          region: nat(2),
          sequence: nat(1),
          source: constantFrom('a', 'B', 'é'),
        }),
        { minLength: 1, maxLength: 14 },
      ),
      prices: array(record({ at: place, resource: nat(2), ofTeam: boolean(), priceNano: nano(1_000_000_000_000n) }), {
        maxLength: 6,
      }),
    }),
  );
}

/** What the four resources of a draft are. The first two share a SKU. */
const resources = [
  { resource: 'gpuaas_pool:1', kind: 'gpuaas_pool', sku: 'gpu', poolId: '7' },
  { resource: 'gpuaas_pool:2', kind: 'gpuaas_pool', sku: 'gpu', poolId: '8' },
  { resource: 'shared_storage:3', kind: 'shared_storage', sku: 'gb', poolId: null },
  { resource: 'vm:4', kind: 'vm', sku: 'vm', poolId: null },
] as const;

let sequence = 0;

/** A draft with a team and SKUs of its own, told to a billing service in whatever batches a law wants. */
export class Scenario {
  readonly facts: OracleFact[];
  readonly prices: OraclePrice[];

  private constructor(
    private readonly billing: BillingFixture,
    readonly team: ToldTeam,
    readonly zone: string,
    readonly draft: Draft,
  ) {
    const run = `${process.pid}-${(sequence += 1)}`;
    // The walls of a draft are read as if they were UTC: near enough for where its facts lie.
    this.facts = draft.facts.map(({ at, resource, workspace, region, ...fact }, index) => {
      const { sku, ...what } = resources[resource] ?? resources[0];
      return {
        ...fact,
        ...what,
        sku: `${sku}-${run}`,
        id: `${run} ${index}`,
        timeMs: draft.startWall + at,
        workspaceId: team.workspaces[workspace]!.id,
        regionId: region === 0 ? null : String(region),
      };
    });
    const named = draft.prices.map(({ at, resource, ofTeam, priceNano }) => {
      const { sku } = resources[resource] ?? resources[0];
      return { sku: `${sku}-${run}`, ofTeam, priceNano, fromMs: draft.startWall + at };
    });
    // One price a start: the first drawn.
    this.prices = [...Map.groupBy(named, ({ sku, ofTeam, fromMs }) => `${sku} ${ofTeam} ${fromMs}`).values()].map(
      ([first]) => first!,
    );
  }

  static async make(billing: BillingFixture, draft: Draft, zone = 'UTC'): Promise<Scenario> {
    return new Scenario(billing, await billing.team('training'), zone, draft);
  }

  async tell(facts: readonly OracleFact[] = this.facts): Promise<void> {
    if (facts.length > 0) await this.billing.call(usage.record, { events: facts.map((fact) => this.#eventOf(fact)) });
  }

  async price(list: readonly OraclePrice[] = this.prices): Promise<void> {
    for (const { sku, ofTeam, fromMs, priceNano } of list) {
      await this.billing.call(prices.create, {
        sku,
        unit: 'unit',
        unit_price: decimal(priceNano),
        valid_from: new Date(fromMs).toISOString(),
        force: true,
        ...(ofTeam && { team_id: this.team.team_id }),
      });
    }
  }

  /** Reads the team's bills, in the scenario's zone unless said. */
  caller(zone = this.zone) {
    return memberOf(this.team.team_id, 'billing_viewer', zone);
  }

  /** The range as its path has it. */
  range(interval = this.draft.interval) {
    const { startWall, lengthSeconds } = this.draft;
    return {
      start_date: wallText(startWall),
      end_date: wallText(startWall + lengthSeconds * 1000),
      interval,
      timezone: 'local' as const,
    };
  }

  #eventOf({ timeMs, quantityNano, resource, workspaceId, regionId, poolId, kind, ...fact }: OracleFact): UsageEvent {
    return {
      ...fact,
      kind: kind as UsageEvent['kind'],
      time: new Date(timeMs).toISOString(),
      quantity: decimal(quantityNano),
      resource_id: resource,
      team_id: this.team.team_id,
      workspace_id: workspaceId,
      ...(regionId && { region_id: regionId }),
      ...(poolId && { pool_id: poolId }),
    };
  }
}

export function decimal(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(10, '0');
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, '');
}

/** Decimal text of the wire, as 10^-9. */
export function nanoOf(text: string): bigint {
  const [, sign = '', units = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (units === '') throw new Error(`${text} is no decimal of at most 9 digits behind the point.`);
  return BigInt(sign + units + fraction.padEnd(9, '0'));
}

/** Whether a zone shows the same local times within the range, so that two zones can be asked for the same instants. */
export function wallOf(zone: string, ms: number): string {
  return wallText(localMs(zone, ms));
}
