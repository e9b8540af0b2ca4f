import { useQueries } from '@tanstack/react-query';
import { utilizationQuery, type MetricWindow } from '../api/queries.js';
import { seriesColour } from '../charts/bar-chart.js';
import { Course } from '../charts/course.js';
import { useInView } from '../charts/use-in-view.js';
import { percent } from '../format/format.js';
import { holdersShown, type GpuShape } from './gpu-shape.js';
import type { Holders } from './holders.js';

interface GpuUseProps extends Holders {
  gpu: GpuShape;
  window: MetricWindow;
}

/**
 * How those who hold parts of a GPU used what they hold, a line each in their colours, as far as the viewer may know.
 * It is read while it is in view.
 */
export function GpuUse({ gpu, window, colourOf, nameOf }: GpuUseProps) {
  const [box, isInView] = useInView();
  const holders = holdersShown(gpu);
  const courses = useQueries({
    queries: holders.map((holder) => ({ ...utilizationQuery(holder, window), enabled: isInView })),
  });
  const lines = holders.flatMap((holder, at) => {
    const values = courses[at]?.data?.points.map((point) => point.gpu_utilization) ?? [];
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return [];
    const text = `${nameOf(holder)} from ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`;
    return [{ values, colour: seriesColour(colourOf(holder) ?? 0), text }];
  });
  if (holders.length === 0) return null;
  return (
    <div className="gpu-use" ref={box}>
      {lines.length > 0 && (
        <Course lines={lines} label={`GPU use on GPU ${gpu.id}: ${lines.map(({ text }) => text).join('; ')}`} />
      )}
    </div>
  );
}
