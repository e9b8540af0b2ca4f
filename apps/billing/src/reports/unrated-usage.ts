import type { UsageKind } from '@atoll/contracts/billing';
import type { Pace } from '@atoll/waiting';
import type { Catalogue } from './catalogue.js';
import type { Grid } from './grid.js';
import { listChanges, readChanges } from './quantity-changes.js';
import { rate, type RatedUsage } from './rated-usage.js';
import type { LineChanges, ResourceChanges } from './usage-query.js';
import { rateWhole, sumPrices, type PriceSums } from './whole-range.js';

export interface Line {
  /** The id field of the groups; empty if there are none. */
  group: string;
  kind: UsageKind;
  sku: string;
  unit: string | null;
}

/** What a group held of a SKU, by bucket. */
export type ReportLine = Line & RatedUsage;
/** What one resource held of a SKU in a group. */
export type ResourceLine = ReportLine & { resourceId: string };

/** A resource within a group. */
export interface PlacedResource {
  /** The group, a space, and the resource: only the latter may have spaces. */
  id: string;
  group: string;
  resourceId: string;
}

export function placedId({ group, resourceId }: Omit<PlacedResource, 'id'>): string {
  return `${group} ${resourceId}`;
}

/** By which the changes that were read can be rated: nothing more is read for it. */
interface RatedBy {
  lines: readonly Line[];
  grid: Grid;
  catalogue: Catalogue;
}

/** Changes of lines over a grid, and what rates them. The prices of a SKU are looked up once for all that hold it. */
class Unrated<Changes extends LineChanges> {
  private readonly prices = new Map<string, (bigint | undefined)[]>();
  private readonly sums = new Map<string, PriceSums>();

  constructor(
    private readonly by: RatedBy,
    protected readonly changes: readonly Changes[],
  ) {}

  protected lineOf({ line: no }: Changes): Line {
    const line = this.by.lines[no];
    if (!line) throw new RangeError('A line that was not asked for.');
    return line;
  }

  protected inOrder(pace: Pace): Promise<Changes[]> {
    return pace.toSorted(this.changes, (a, b) => a.line - b.line);
  }

  protected async rateOne(changes: Changes, pace: Pace): Promise<ReportLine> {
    const { grid, catalogue } = this.by;
    const line = this.lineOf(changes);
    const prices = this.prices.get(line.sku) ?? (await catalogue.prices.get(line.sku)?.over(grid, pace)) ?? [];
    this.prices.set(line.sku, prices);
    if (grid.bucketCount === 1) {
      const sums = this.sums.get(line.sku) ?? (await sumPrices(grid, prices, pace));
      this.sums.set(line.sku, sums);
      return { ...line, ...(await rateWhole(await listChanges(changes.changes, pace), grid, sums, pace)) };
    }
    const read = await readChanges(changes.changes, grid.lengthsMs.length, pace);
    return { ...line, ...(await rate(read, grid, prices, pace)) };
  }
}

export class UnratedLines extends Unrated<LineChanges> {
  /** The ids of their groups, each once. */
  async groups(pace: Pace): Promise<string[]> {
    const groups = await pace.map(this.changes, (changes) => this.lineOf(changes).group);
    return [...new Set(groups)];
  }

  /** By kind, then SKU. */
  async rate(pace: Pace): Promise<ReportLine[]> {
    const rated: ReportLine[] = [];
    for (const changes of await this.inOrder(pace)) rated.push(await this.rateOne(changes, pace));
    return rated;
  }
}

export class UnratedResources extends Unrated<ResourceChanges> {
  /** Each resource once in each of its groups. */
  async placed(pace: Pace): Promise<PlacedResource[]> {
    const placed = new Map<string, PlacedResource>();
    for (const changes of this.changes) {
      const place = { group: this.lineOf(changes).group, resourceId: changes.resourceId };
      const id = placedId(place);
      placed.set(id, { id, ...place });
      if (pace.isFull()) await pace.turn();
    }
    return [...placed.values()];
  }

  /** By kind, then SKU. */
  async rate(pace: Pace): Promise<ResourceLine[]> {
    const rated: ResourceLine[] = [];
    for (const changes of await this.inOrder(pace))
      rated.push({ ...(await this.rateOne(changes, pace)), resourceId: changes.resourceId });
    return rated;
  }
}
