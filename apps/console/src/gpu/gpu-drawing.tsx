import type { MetricWindow } from '../api/queries.js';
import { seriesColour } from '../charts/bar-chart.js';
import { describeGpu, type GpuShape, type HeldPart } from './gpu-shape.js';
import { GpuUse } from './gpu-use.js';
import type { Holders } from './holders.js';

const width = 320;
const area = { x: 12, y: 12, width: 296, height: 76 };
const fingers = 29;

interface GpuDrawingProps extends Holders {
  gpu: GpuShape;
  /** Over which the use of its parts is shown below it. */
  window: MetricWindow;
}

/**
 * A GPU as a board, to scale: with MIG and MPS its memory lies from left to right and each slice takes its share of it;
 * where it is shared in time, each holder has a lane of the whole width. In use is filled, held and idle is an outline,
 * reserved is hatched, free is dotted.
 */
export function GpuDrawing({ gpu, window, colourOf, nameOf }: GpuDrawingProps) {
  return (
    <figure className="gpu">
      <svg viewBox={`0 0 ${width} 112`} role="img" aria-label={describeGpu(gpu, nameOf)}>
        <defs>
          <pattern
            id={`hatch-${gpu.id}`}
            width="7"
            height="7"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect width="3" height="7" fill="var(--accent)" />
          </pattern>
        </defs>
        {Array.from({ length: fingers }, (_, at) => (
          <rect key={at} className="gpu-finger" x={28 + at * 9} y={99} width={5} height={9} rx={1} />
        ))}
        <rect className="gpu-board" x={1} y={1} width={width - 2} height={98} rx={12} />
        <Slots gpu={gpu} />
        {gpu.parts.map((part) => (
          <Held
            key={`${part.start} ${part.profile} ${part.holder}`}
            part={part}
            gpu={gpu}
            colour={colourOf(part.holder)}
          />
        ))}
        {gpu.transition !== null && <rect className="gpu-pulse" x={4} y={4} width={width - 8} height={92} rx={10} />}
      </svg>
      <figcaption>
        <strong>GPU {gpu.id}</strong>
        <span className="quiet">
          {gpu.board} · {modeText(gpu)}
        </span>
      </figcaption>
      <GpuUse gpu={gpu} window={window} colourOf={colourOf} nameOf={nameOf} />
      {gpu.reason !== null && <p className="hint given">{gpu.reason}</p>}
    </figure>
  );
}

const transitions = {
  preparing: 'being prepared…',
  to_temporal: 'switching to Temporal…',
  to_spatial: 'switching to Spatial…',
};

function modeText({ mode, transition, isFallback }: GpuShape): string {
  if (transition !== null) return transitions[transition];
  if (mode === null) return 'in no pool';
  return isFallback ? `${mode} (fallback)` : mode;
}

function boxOf({ mode, slots }: GpuShape, start: number, size: number) {
  const gap = slots > 16 ? 1 : 2;
  if (mode === 'Temporal') {
    const lane = area.height / slots;
    return { x: area.x, y: area.y + start * lane, width: area.width, height: Math.max(1, size * lane - gap) };
  }
  const slot = area.width / slots;
  return { x: area.x + start * slot, y: area.y, width: Math.max(1, size * slot - gap), height: area.height };
}

function Slots({ gpu }: { gpu: GpuShape }) {
  const taken = new Set(gpu.parts.flatMap(({ start, size }) => Array.from({ length: size }, (_, at) => start + at)));
  return Array.from({ length: gpu.slots }, (_, at) => at)
    .filter((at) => !taken.has(at))
    .map((at) => <rect key={at} className="gpu-slot" {...boxOf(gpu, at, 1)} rx={gpu.mode === 'Temporal' ? 2 : 5} />);
}

function Held({ part, gpu, colour }: { part: HeldPart; gpu: GpuShape; colour: number | null }) {
  const box = boxOf(gpu, part.start, part.size);
  const fill = colour === null ? 'var(--line-strong)' : seriesColour(colour);
  const ink = colour === null ? 'var(--surface)' : fill.replace(')', '-ink)');
  const look =
    part.state === 'occupied' || part.state === null
      ? { className: 'gpu-held', fill }
      : part.state === 'leased'
        ? { className: 'gpu-idle', stroke: fill }
        : { className: 'gpu-held', fill: `url(#hatch-${gpu.id})` };
  const hasRoom = box.width > 30 && box.height > 15;
  const isUpright = box.width < part.profile.length * 7;
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  return (
    <g>
      <rect {...box} {...look} rx={gpu.mode === 'Temporal' ? 2 : 5} />
      {hasRoom && part.state !== 'reserved' && gpu.mode !== 'Temporal' && (
        <text
          x={middle.x}
          y={middle.y + 4}
          textAnchor="middle"
          fill={part.state === 'occupied' || part.state === null ? ink : 'var(--ink)'}
          {...(isUpright && { transform: `rotate(-90 ${middle.x} ${middle.y})` })}
        >
          {part.profile}
        </text>
      )}
    </g>
  );
}

/** What filled, outlined, hatched and dotted mean. */
export function GpuLegend({ hasOthers = false }: { hasOthers?: boolean }) {
  return (
    <ul className="legend" aria-label="Meaning of the drawings">
      <li>
        <span className="swatch" style={{ background: 'var(--series-1)' }} />
        in use
      </li>
      <li>
        <span className="swatch" style={{ border: '2px solid var(--series-1)' }} />
        held, idle
      </li>
      <li>
        <span
          className="swatch"
          style={{ background: 'repeating-linear-gradient(45deg, var(--accent) 0 2px, transparent 2px 4px)' }}
        />
        reserved
      </li>
      {hasOthers && (
        <li>
          <span className="swatch" style={{ background: 'var(--line-strong)' }} />
          another team’s
        </li>
      )}
      <li>
        <span className="swatch" style={{ border: '1px dotted var(--line-strong)' }} />
        free
      </li>
    </ul>
  );
}
