import { gridOf, type Interval } from './local-time-fixture.js';

/** A fact or a price as the oracle needs it. Quantities and prices are 10^-9 units, times epoch milliseconds. */
export interface OracleFact {
  source: string;
  id: string;
  timeMs: number;
  sequence: number;
  resource: string;
  kind: string;
  sku: string;
  quantityNano: bigint;
  workspaceId: string;
  regionId: string | null;
  poolId: string | null;
}

export interface OraclePrice {
  sku: string;
  ofTeam: boolean;
  fromMs: number;
  priceNano: bigint;
}

/** A stretch of one resource's holding of one SKU at one price; null where there is none. */
export interface Piece extends Omit<OracleFact, 'source' | 'id' | 'timeMs' | 'sequence'> {
  startMs: number;
  endMs: number;
  priceNano: bigint | null;
}

/** Exact sums over some pieces. Quantity × time in 10^-9 units × ms; cost in 10^-18 × ms, of an hour. */
export interface Sum {
  heldNanoMs: bigint;
  exact: bigint;
}

/** Sums of costs divide by this to 10^-9 of the currency. */
export const perNano = 3_600_000n * 1_000_000_000n;

export interface Question {
  zone: string;
  interval: Interval;
  startMs: number;
  endMs: number;
  /** Running usage counts up to here. */
  asOfMs: number;
}

/** What a bill must say, worked out piece by piece. */
export class Oracle {
  private constructor(
    readonly bounds: readonly number[],
    readonly isPartial: (index: number) => boolean,
    private readonly pieces: readonly Piece[],
  ) {}

  static of(facts: readonly OracleFact[], prices: readonly OraclePrice[], question: Question): Oracle {
    const { zone, interval, startMs, endMs, asOfMs } = question;
    const grid = gridOf(zone, interval, startMs, endMs);
    const bounds = [...new Set([startMs, ...grid, endMs])].sort((one, other) => one - other);
    const full = new Set(grid);
    const isPartial = (index: number) => {
      const [from = 0, to = 0] = bounds.slice(index, index + 2);
      return !full.has(from) || !full.has(to) || (from <= asOfMs && asOfMs < to);
    };
    const pieces = held(facts, asOfMs)
      .flatMap((piece) => priced(piece, prices))
      .map((piece) => ({ ...piece, startMs: Math.max(piece.startMs, startMs), endMs: Math.min(piece.endMs, endMs) }))
      .filter((piece) => piece.startMs < piece.endMs);
    return new Oracle(bounds, isPartial, pieces);
  }

  /** The part of it that a narrower scope is about. */
  where(isMeant: (piece: Piece) => boolean): Oracle {
    return new Oracle(this.bounds, this.isPartial, this.pieces.filter(isMeant));
  }

  sum(isMeant: (piece: Piece) => boolean = () => true, startMs = -Infinity, endMs = Infinity): Sum {
    let [heldNanoMs, exact] = [0n, 0n];
    for (const piece of this.pieces.filter(isMeant)) {
      const ms = Math.min(piece.endMs, endMs) - Math.max(piece.startMs, startMs);
      if (ms <= 0) continue;
      heldNanoMs += piece.quantityNano * BigInt(ms);
      exact += piece.quantityNano * BigInt(ms) * (piece.priceNano ?? 0n);
    }
    return { heldNanoMs, exact };
  }

  keys(keyOf: (piece: Piece) => string): string[] {
    return [...new Set(this.pieces.map(keyOf))].sort();
  }
}

/** Each timeline's steps: what holds from a fact to the next one. */
function held(facts: readonly OracleFact[], asOfMs: number): Piece[] {
  const lines = Map.groupBy(facts, ({ resource, sku }) => `${resource} ${sku}`);
  return [...lines.values()].flatMap((line) => {
    const inOrder = line.toSorted(
      (one, other) =>
        one.timeMs - other.timeMs ||
        one.sequence - other.sequence ||
        Buffer.compare(Buffer.from(one.source), Buffer.from(other.source)) ||
        Buffer.compare(Buffer.from(one.id), Buffer.from(other.id)),
    );
    return inOrder
      .map((fact, index) => ({
        ...fact,
        startMs: fact.timeMs,
        endMs: Math.min(inOrder[index + 1]?.timeMs ?? Infinity, asOfMs),
        priceNano: null,
      }))
      .filter(({ quantityNano, startMs, endMs }) => quantityNano > 0n && startMs < endMs);
  });
}

/** Cut where a price begins, each part with what held at its start. */
function priced(piece: Piece, prices: readonly OraclePrice[]): Piece[] {
  const ofSku = prices.filter(({ sku }) => sku === piece.sku);
  const starts = [
    piece.startMs,
    ...ofSku.map(({ fromMs }) => fromMs).filter((at) => at > piece.startMs && at < piece.endMs),
  ];
  const cuts = [...new Set(starts)].sort((one, other) => one - other);
  return cuts.map((startMs, index) => ({
    ...piece,
    startMs,
    endMs: cuts[index + 1] ?? piece.endMs,
    priceNano: priceAt(ofSku, startMs),
  }));
}

function priceAt(prices: readonly OraclePrice[], atMs: number): bigint | null {
  const latest = (isMeant: (price: OraclePrice) => boolean) =>
    prices
      .filter((price) => price.fromMs <= atMs && isMeant(price))
      .toSorted((one, other) => other.fromMs - one.fromMs)[0];
  return (latest(({ ofTeam }) => ofTeam) ?? latest(({ ofTeam }) => !ofTeam))?.priceNano ?? null;
}

/** Half up, of what is not negative. */
export function halfUp(numerator: bigint, denominator: bigint): bigint {
  return (2n * numerator + denominator) / (2n * denominator);
}
