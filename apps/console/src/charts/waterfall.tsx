import { useRef } from 'react';
import { useWidth } from './use-width.js';

export interface Step {
  id: string;
  name: string;
  /** Where it starts and ends, on the scale of the totals. */
  from: number;
  to: number;
  kind: 'total' | 'up' | 'down';
  text: string;
}

const rowHeight = 30;
const assumedWidth = 720;
const valueWidth = 96;

const colours = { total: 'var(--series-1)', up: 'var(--series-5)', down: 'var(--series-4)' };

/** How one total becomes another, step by step: rows, so that names have room at any width. */
export function Waterfall({ label, steps }: { label: string; steps: readonly Step[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame, assumedWidth);
  const labelWidth = Math.min(260, width * 0.42);
  const letters = Math.floor(labelWidth / 6.4);
  const values = steps.flatMap(({ from, to }) => [from, to]);
  const high = Math.max(...values, 0) || 1;
  const low = Math.min(...values, 0);
  const xOf = (value: number) => labelWidth + ((value - low) / (high - low || 1)) * (width - labelWidth - valueWidth);
  return (
    <div className="chart" ref={frame}>
      <svg viewBox={`0 0 ${width} ${steps.length * rowHeight + 4}`} role="img" aria-label={label}>
        {steps.map(({ id, name, from, to, kind, text }, at) => (
          <g key={id} transform={`translate(0 ${at * rowHeight})`}>
            <text x={0} y={19}>
              {name.length > letters ? `${name.slice(0, letters - 1)}…` : name}
            </text>
            <rect
              x={Math.min(xOf(from), xOf(to))}
              y={5}
              width={Math.max(1.5, Math.abs(xOf(to) - xOf(from)))}
              height={rowHeight - 10}
              rx={3}
              fill={colours[kind]}
            />
            <text x={width} y={19} textAnchor="end">
              {text}
            </text>
            {at + 1 < steps.length && (
              <line className="chart-zero" x1={xOf(to)} x2={xOf(to)} y1={rowHeight - 5} y2={rowHeight + 5} />
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}
