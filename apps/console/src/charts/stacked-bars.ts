export interface BarFrame {
  width: number;
  height: number;
  /** Share of its slot that a bar fills. */
  fill: number;
}

export interface StackedBars {
  /** One SVG path for each series, in their order. */
  paths: string[];
  /** From the smallest to the greatest value that is drawn; 0 is among them. */
  low: number;
  high: number;
}

/**
 * Stacks series of numbers into bars, one a bucket: positive values upwards from zero, negative ones downwards. A path
 * a series, however many buckets there are, so that a year of days is a dozen nodes.
 */
export function stackBars(series: readonly (readonly number[])[], { width, height, fill }: BarFrame): StackedBars {
  const buckets = series[0]?.length ?? 0;
  const up = new Array<number>(buckets).fill(0);
  const down = new Array<number>(buckets).fill(0);
  for (const values of series)
    for (const [at, value] of values.entries())
      (value < 0 ? down : up)[at] = ((value < 0 ? down : up)[at] ?? 0) + value;
  const high = niceCeiling(Math.max(0, ...up));
  const low = -niceCeiling(-Math.min(0, ...down));
  const scale = height / (high - low || 1);
  const slot = width / (buckets || 1);
  const barWidth = round(Math.max(0.5, slot * fill));
  up.fill(0);
  down.fill(0);
  const paths = series.map((values) =>
    values
      .map((value, at) => {
        if (value === 0) return '';
        const sums = value < 0 ? down : up;
        const from = sums[at] ?? 0;
        sums[at] = from + value;
        const x = round(at * slot + (slot - barWidth) / 2);
        const top = round((high - Math.max(from, from + value)) * scale);
        return `M${x} ${top}h${barWidth}v${round(Math.abs(value) * scale)}h-${barWidth}z`;
      })
      .join(''),
  );
  return { paths, low, high };
}

/** The least of 1, 1.5, 2, 2.5, 3, 4, 5, 7.5 and 10, times a power of ten, that is not below. */
export function niceCeiling(value: number): number {
  if (value <= 0) return 0;
  const magnitude = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].find((factor) => factor * magnitude >= value * (1 - 1e-12)) ?? 10;
  return step * magnitude;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
