import { coursePaths } from './course-paths.js';

export interface CourseLine {
  /** Percentages at equal distances; null where there is no figure. */
  values: readonly (number | null)[];
  colour?: string;
}

/** Percentages in the course of time as lines; a gap where there is no figure. */
export function Course({ lines, label }: { lines: readonly CourseLine[]; label: string }) {
  return (
    <svg className="course" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label={label}>
      <line x1="0" x2="120" y1="27.5" y2="27.5" stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      {lines.map(({ values, colour = 'var(--accent)' }, at) => {
        const { stretches, dots } = coursePaths(values, { width: 120, height: 28 });
        return (
          <g key={at} fill="none" stroke={colour} strokeLinecap="round">
            <path d={stretches.join('')} strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
            <path d={dots.join('')} strokeWidth="5" vectorEffect="non-scaling-stroke" />
          </g>
        );
      })}
    </svg>
  );
}
