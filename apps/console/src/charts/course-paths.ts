/** The lines of percentages at equal distances, 0 at the bottom and 100 at the top: one for each stretch without a gap. A lone figure is a dot. */
export function coursePaths(values: readonly (number | null)[], { width, height }: { width: number; height: number }): string[] {
  const step = width / Math.max(1, values.length - 1);
  const stretches: string[][] = [];
  let open: string[] | undefined;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      open = undefined;
      continue;
    }
    if (!open) stretches.push((open = []));
    open.push(`${(at * step).toFixed(1)} ${(height - 1 - (Math.min(100, Math.max(0, value)) / 100) * (height - 2)).toFixed(1)}`);
  }
  return stretches.map((points) => (points.length === 1 ? `M${points[0]}h0.1` : `M${points.join('L')}`));
}
