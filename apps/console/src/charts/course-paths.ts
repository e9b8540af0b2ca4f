export interface CoursePaths {
  /** One for each stretch without a gap. */
  stretches: string[];
  /** Figures with a gap on either side, as paths of no length: round ends make dots of them. */
  dots: string[];
}

/** The lines of percentages at equal distances, 0 at the bottom and 100 at the top. */
export function coursePaths(
  values: readonly (number | null)[],
  { width, height }: { width: number; height: number },
): CoursePaths {
  const step = width / Math.max(1, values.length - 1);
  const stretches: string[][] = [];
  let open: string[] | undefined;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      open = undefined;
      continue;
    }
    if (!open) stretches.push((open = []));
    open.push(
      `${(at * step).toFixed(1)} ${(height - 1 - (Math.min(100, Math.max(0, value)) / 100) * (height - 2)).toFixed(1)}`,
    );
  }
  return {
    stretches: stretches.filter(({ length }) => length > 1).map((points) => `M${points.join('L')}`),
    dots: stretches.filter(({ length }) => length === 1).map(([point]) => `M${point}h0`),
  };
}
