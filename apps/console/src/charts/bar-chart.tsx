import { useRef, useState, type KeyboardEvent } from 'react';
import { stackBars } from './stacked-bars.js';
import { useWidth } from './use-width.js';

export interface Series {
  id: string;
  name: string;
  values: readonly number[];
}

interface BarChartProps {
  label: string;
  buckets: readonly string[];
  series: readonly Series[];
  /** A value as text, `$1.20`, with the decimals that tell values apart which are `step` from each other. */
  format: (value: number, step: number) => string;
}

const assumedWidth = 720;
const height = 240;
const left = 68;
const bottom = 24;
const nameWidth = 84;
const ticks = 4;

/** The colour of a series or a holder: eight, then over again. */
export function seriesColour(at: number): string {
  return `var(--series-${(at % 8) + 1})`;
}

/**
 * Bars over time, one path a series. The numbers are read by pointing at a bar or with the arrow keys, aloud too; the
 * table beside the chart has them all.
 */
export function BarChart({ label, buckets, series, format }: BarChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame, assumedWidth);
  const inner = { width: width - left, height: height - bottom, fill: buckets.length > 60 ? 0.9 : 0.7 };
  const { paths, low, high } = stackBars(
    series.map(({ values }) => values),
    inner,
  );
  const step = (high - low) / ticks;
  const yOf = (value: number) => ((high - value) / (high - low || 1)) * inner.height;
  const slot = inner.width / (buckets.length || 1);
  const names = Math.max(1, Math.ceil((buckets.length * nameWidth) / inner.width));
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setAt((from) => Math.min(buckets.length - 1, Math.max(0, (from ?? (step < 0 ? buckets.length : -1)) + step)));
  };
  return (
    <div className="chart">
      <div className="chart-frame" ref={frame}>
        <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
          {Array.from({ length: ticks + 1 }, (_, tick) => low + step * tick).map((value) => (
            <g key={value}>
              <line className="chart-grid" x1={left} x2={width} y1={yOf(value)} y2={yOf(value)} />
              <text x={left - 8} y={yOf(value) + 4} textAnchor="end">
                {format(value, step)}
              </text>
            </g>
          ))}
          <g transform={`translate(${left} 0)`}>
            {at !== null && <rect className="chart-cursor" x={at * slot} y={0} width={slot} height={inner.height} />}
            {paths.map((path, index) => (
              <path key={series[index]?.id} d={path} fill={seriesColour(index)} />
            ))}
            {buckets.map((name, index) =>
              index % names === 0 && index * slot + nameWidth * 0.8 < inner.width ? (
                <text key={name + String(index)} x={index * slot} y={height - 6}>
                  {name}
                </text>
              ) : null,
            )}
          </g>
          <line className="chart-zero" x1={left} x2={width} y1={yOf(0)} y2={yOf(0)} />
        </svg>
        <button
          type="button"
          className="chart-overlay"
          aria-label={`${label}. Read the bars with the arrow keys.`}
          onKeyDown={move}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            const x = ((event.clientX - box.left) / box.width) * width - left;
            setAt(x < 0 || buckets.length === 0 ? null : Math.min(buckets.length - 1, Math.floor(x / slot)));
          }}
          onPointerLeave={() => setAt(null)}
          onBlur={() => setAt(null)}
        />
      </div>
      <p className="chart-readout" aria-live="polite">
        {at === null
          ? 'Point at a bar, or use the arrow keys, to read it.'
          : readout(at, buckets, series, (value) => format(value, step))}
      </p>
    </div>
  );
}

function readout(
  at: number,
  buckets: readonly string[],
  series: readonly Series[],
  format: (value: number) => string,
): string {
  const parts = series.flatMap(({ name, values }) => (values[at] ? [`${name} ${format(values[at])}`] : []));
  const total = series.reduce((all, { values }) => all + (values[at] ?? 0), 0);
  return `${buckets[at] ?? ''}: ${format(total)}${parts.length > 1 ? ` (${parts.join(', ')})` : ''}`;
}

export function Legend({ series, values }: { series: readonly Series[]; values?: readonly string[] }) {
  return (
    <ul className="legend">
      {series.map(({ id, name }, at) => (
        <li key={id}>
          <span className="swatch" style={{ background: seriesColour(at) }} />
          <span className="clip">{name}</span>
          {values?.[at] !== undefined && <span className="quiet">{values[at]}</span>}
        </li>
      ))}
    </ul>
  );
}

/** The shape of a few figures, beside the figure that matters. Its numbers stand elsewhere on the page. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const high = Math.max(...values, 0) || 1;
  const step = 200 / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)} ${(42 - (value / high) * 40).toFixed(1)}`);
  return (
    <svg className="spark" viewBox="0 0 200 44" preserveAspectRatio="none" role="img" aria-label={label}>
      <path d={`M0 43L${points.join('L')}L200 43z`} fill="var(--accent-wash)" />
      <path
        d={`M${points.join('L')}`}
        fill="none"
        stroke="var(--accent)"
        strokeWidth="2"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
