import { useQuery } from '@tanstack/react-query';
import { utilizationQuery, type MetricWindow } from '../../api/queries.js';
import { Course } from '../../charts/course.js';
import { percent } from '../../format/format.js';

/**
 * How the GPUs of a subscription were used in the course of the window. What cannot be read takes no room from the
 * figures.
 */
export function Utilization({ id, name, window }: { id: string; name: string; window: MetricWindow }) {
  const { data } = useQuery(utilizationQuery(id, window));
  const values = data?.points.map((point) => point.gpu_utilization) ?? [];
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return <span className="course" />;
  const label = `GPU use of ${name}, from ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`;
  return <Course lines={[{ values }]} label={label} />;
}
