import { coursePaths } from './course-paths.js';

/** Percentages in the course of time as a line; a gap where there is no figure. */
export function Course({ values, label }: { values: readonly (number | null)[]; label: string }) {
  return (
    <svg className="course" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label={label}>
      <line x1="0" x2="120" y1="27.5" y2="27.5" stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      {coursePaths(values, { width: 120, height: 28 }).map((path) => (
        <path
          key={path}
          d={path}
          fill="none"
          stroke="var(--accent)"
          strokeWidth="1.5"
          strokeLinecap="round"
          vectorEffect="non-scaling-stroke"
        />
      ))}
    </svg>
  );
}
