import { boardNamed } from '@atoll/gpu';

/** A part of a GPU that somebody holds. */
export interface HeldPart {
  /** The holder, if the viewer may know it; null for another team. */
  holder: string | null;
  profile: string;
  start: number;
  size: number;
  /** null: another team's, whose doings are not told. */
  state: 'reserved' | 'leased' | 'occupied' | null;
}

/** A GPU as it is drawn, whoever looks at it. */
export interface GpuShape {
  id: string;
  board: string;
  mode: 'Spatial' | 'Temporal' | null;
  isFallback: boolean;
  transition: 'preparing' | 'to_temporal' | 'to_spatial' | null;
  reason: string | null;
  /** Memory slices of the board with MIG, replicas with MPS, turns where it is shared in time. */
  slots: number;
  parts: readonly HeldPart[];
}

interface PoolTerms {
  mechanism: 'mig' | 'mps' | 'time_slicing';
  replicas: number | null;
  temporal_replicas: number | null;
}

interface GpuFacts {
  gpu_id: string;
  board: string;
  mode: 'Spatial' | 'Temporal' | null;
  origin: 'configured' | 'dynamic_fallback';
  transition: 'preparing' | 'to_temporal' | 'to_spatial' | null;
  slices: readonly {
    profile: string;
    start: number;
    size: number;
    state: HeldPart['state'];
    subscription_id: string | null;
  }[];
  tenants: readonly { subscription_id: string | null; workload_id: string | null }[];
}

/** Number of slots in the drawing: enough for all held slices, even if the pool is unknown. */
function slotsOf({ board, mode, slices, tenants }: GpuFacts, pool: PoolTerms | undefined): number {
  const held = mode === 'Temporal' ? tenants.length : Math.max(0, ...slices.map(({ start, size }) => start + size));
  const memorySlices = boardNamed(board)?.memorySlices ?? 0;
  const bySpace = pool?.mechanism === 'mps' ? (pool.replicas ?? 0) : memorySlices;
  const byTime = pool?.temporal_replicas ?? pool?.replicas ?? 0;
  return Math.max(held, mode === 'Temporal' ? byTime : bySpace, 1);
}

/** The shape of a GPU from the inventory; if the GPU has no number of slots, the pool's is used. */
export function shapeOf(gpu: GpuFacts & { reason?: string | null; slots?: number }, pool?: PoolTerms): GpuShape {
  const turns = gpu.tenants.map(({ subscription_id, workload_id }, at): HeldPart => ({
    holder: subscription_id,
    profile: 'turn',
    start: at,
    size: 1,
    state: subscription_id === null ? null : workload_id === null ? 'leased' : 'occupied',
  }));
  const slices = gpu.slices.map(({ profile, start, size, state, subscription_id }): HeldPart => ({
    holder: subscription_id,
    profile,
    start,
    size,
    state,
  }));
  return {
    id: gpu.gpu_id,
    board: gpu.board,
    mode: gpu.mode,
    isFallback: gpu.origin === 'dynamic_fallback',
    transition: gpu.transition,
    reason: gpu.reason ?? null,
    slots: gpu.slots ?? slotsOf(gpu, pool),
    parts: gpu.mode === 'Temporal' ? turns : slices,
  };
}

const mostLines = 8;

/** Whose use is drawn as lines: the first eight whom the viewer may know. */
export function holdersShown({ parts }: Pick<GpuShape, 'parts'>): string[] {
  return [...new Set(parts.flatMap(({ holder }) => holder ?? []))].slice(0, mostLines);
}

const states = { reserved: 'reserved', leased: 'held, idle', occupied: 'in use', other: 'held' };

const transitions = {
  preparing: 'being prepared',
  to_temporal: 'switching to Temporal',
  to_spatial: 'switching to Spatial',
};

/** The drawing in words. */
export function describeGpu(
  { id, board, mode, transition, slots, parts }: GpuShape,
  nameOf: (holder: string | null) => string,
): string {
  const kind = mode === null ? 'in no pool' : mode;
  const switching = transition === null ? '' : `, ${transitions[transition]}`;
  const held = parts
    .map(({ holder, profile, state }) => `${profile} ${states[state ?? 'other']} by ${nameOf(holder)}`)
    .join('; ');
  const used = parts.reduce((all, { size }) => all + size, 0);
  return `GPU ${id}, ${board}, ${kind}${switching}: ${used} of ${slots} slots held${held && `: ${held}`}.`;
}
