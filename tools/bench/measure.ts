import autocannon from 'autocannon';

/** One candidate of a comparison: where it listens and what its callers send along. */
export interface Target {
  name: string;
  url: string;
  headers?: Record<string, string>;
}

export interface Load {
  connections: number;
  seconds: number;
}

/** Requests per second of one run. Throws when any answer is not 2xx: a fast refusal is no throughput. */
async function throughput(target: Target, load: Load): Promise<number> {
  const result = await autocannon({
    url: target.url,
    connections: load.connections,
    duration: load.seconds,
    ...(target.headers && { headers: target.headers }),
  });
  if (result.non2xx > 0 || result.errors > 0 || result['2xx'] === 0) {
    throw new Error(
      `${target.name}: ${result.non2xx} refusals and ${result.errors} errors beside ${result['2xx']} answers`,
    );
  }
  return result['2xx'] / result.duration;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The value below which so great a share of the values lies: 0.99 for p99. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

export interface Comparison {
  product: number;
  floor: number;
  /** Median of the ratios pair by pair, so that a machine that changes its speed between pairs changes nothing. */
  ratio: number;
}

/** Product and floor in turn, `rounds` times after one warm-up each. */
export async function compare(product: Target, floor: Target, load: Load, rounds: number): Promise<Comparison> {
  const warmUp = { ...load, seconds: 3 };
  await throughput(product, warmUp);
  await throughput(floor, warmUp);
  const pairs: [number, number][] = [];
  for (let round = 0; round < rounds; round++)
    pairs.push([await throughput(product, load), await throughput(floor, load)]);
  return comparisonOf(pairs);
}

/** Of pairs of product and floor, measured one after the other. */
export function comparisonOf(pairs: readonly (readonly [product: number, floor: number])[]): Comparison {
  return {
    product: median(pairs.map(([one]) => one)),
    floor: median(pairs.map(([, other]) => other)),
    ratio: median(pairs.map(([one, other]) => one / other)),
  };
}

/**
 * Median duration in ms of each candidate: all of them once a round, in another order each time, after some rounds that
 * do not count.
 */
export async function mediansInTurn<Name extends string>(
  candidates: Readonly<Record<Name, () => Promise<unknown>>>,
  rounds: number,
): Promise<Record<Name, number>> {
  const names = Object.keys(candidates) as Name[];
  const durationsMs = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = -Math.ceil(rounds / 6); round < rounds; round++) {
    for (const name of shuffled(names)) {
      const startedAt = performance.now();
      await candidates[name]();
      if (round >= 0) durationsMs.get(name)?.push(performance.now() - startedAt);
    }
  }
  return Object.fromEntries([...durationsMs].map(([name, durations]) => [name, median(durations)])) as Record<
    Name,
    number
  >;
}

function shuffled<T>(values: readonly T[]): T[] {
  const keyed = values.map((value) => ({ value, key: Math.random() }));
  return keyed.sort((one, other) => one.key - other.key).map(({ value }) => value);
}
