import { useQuery } from '@tanstack/react-query';
import { utilizationQuery, type MetricWindow } from '../../api/queries.js';
import { Course } from '../../charts/course.js';
import { useInView } from '../../charts/use-in-view.js';
import { percent } from '../../format/format.js';

/**
 * How the GPUs of a subscription were used in the course of the window. It is read while it is in view: a call for each
 * row of a long list would use up the rate limit of the user. What cannot be read takes no room from the figures.
 */
export function Utilization({ id, name, window }: { id: string; name: string; window: MetricWindow }) {
  const [box, isInView] = useInView();
  const { data } = useQuery({ ...utilizationQuery(id, window), enabled: isInView });
  const values = data?.points.map((point) => point.gpu_utilization) ?? [];
  const known = values.filter((value) => value !== null);
  const label = `GPU use of ${name}, from ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`;
  return (
    <span className="course" ref={box}>
      {known.length > 0 && <Course lines={[{ values }]} label={label} />}
    </span>
  );
}
