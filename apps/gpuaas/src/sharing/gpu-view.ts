import type { Gpu, GpuSlice, GpuTenant } from '@atoll/contracts/gpuaas';
import { boardNamed, vRamGb } from '@atoll/gpu';
import type { LeaseEntity } from '../model/lease.entity.js';
import type { GpuEntity } from '../model/gpu.entity.js';
import { gpuMachine, type GpuState } from '../model/gpu.machine.js';

/** A lease, and whether who asked for it still waits. */
export interface ShownLease extends Pick<
  LeaseEntity,
  'profile' | 'slotStart' | 'slotSize' | 'turn' | 'subscriptionId' | 'workloadId'
> {
  readonly isAwaited: boolean;
}

type SharedAs = Pick<Gpu, 'mode' | 'origin' | 'transition'>;

/** A change of the mode takes seconds. */
const slowMs = 10_000;

const configured: SharedAs = { mode: 'Spatial', origin: 'configured', transition: null };
const fallenBack: SharedAs = { mode: 'Temporal', origin: 'dynamic_fallback', transition: null };

/** The view of each state for users; for a GPU in transition also the mode that it comes from. */
const sharedAs: Record<Exclude<GpuState, 'unpooled' | 'offline' | 'preparing'>, SharedAs> = {
  spatial: configured,
  to_temporal: { ...configured, transition: 'to_temporal' },
  doubting_temporal: { ...configured, transition: 'to_temporal' },
  temporal: fallenBack,
  to_spatial: { ...fallenBack, transition: 'to_spatial' },
  doubting_spatial: { ...fallenBack, transition: 'to_spatial' },
  configured_temporal: { ...configured, mode: 'Temporal' },
};

/** A GPU on the wire, with its leases; `configuredMode` is its pool's. */
export function gpuView(
  gpu: GpuEntity,
  leases: readonly ShownLease[],
  configuredMode: 'Spatial' | 'Temporal' | null,
): Gpu {
  return {
    gpu_id: String(gpu.gpuId),
    uuid: gpu.uuid,
    board: gpu.board,
    pool_id: gpu.poolId && String(gpu.poolId),
    ...modeOf(gpu, leases, configuredMode),
    reason: failureOf(gpu) ?? slownessOf(gpu),
    slices: leases.flatMap((lease) => sliceOf(lease, gpu)),
    tenants: leases.filter(({ turn }) => turn !== null).map(tenantOf),
  };
}

/** Why a GPU is not in its mode, or could not fall back last: since the latter may stand for months, with its time. */
function failureOf({ state, lastError }: GpuEntity): string | null {
  if (!lastError || state !== 'spatial') return lastError?.message ?? null;
  return `${lastError.message} It failed to fall back at ${lastError.at}; other GPUs are preferred since.`;
}

/** Of a GPU that is on its way for so long that its node may hang, or waits to be prepared: nothing has failed yet. */
function slownessOf({ state, deadlineAt, enteredAt }: GpuEntity): string | null {
  const rule = gpuMachine.definition.states.get(state as GpuState)?.rule;
  if (!rule || Date.now() - enteredAt.getTime() < slowMs) return null;
  if (deadlineAt === null) return 'Many GPUs are being prepared; its turn has not come yet.';
  const begunAt = new Date(deadlineAt.getTime() - rule.deadlineMs);
  if (Date.now() - begunAt.getTime() < slowMs) return null;
  return `Its node has not reported the change as done since ${begunAt.toISOString()}; the change times out at ${deadlineAt.toISOString()}.`;
}

function modeOf(
  { state }: GpuEntity,
  leases: readonly ShownLease[],
  configuredMode: 'Spatial' | 'Temporal' | null,
): SharedAs {
  if (state !== 'unpooled' && state !== 'offline' && state !== 'preparing')
    return sharedAs[state as keyof typeof sharedAs];
  const hasFallenBack = configuredMode === 'Spatial' && leases.some(({ turn }) => turn !== null);
  return {
    ...(hasFallenBack ? fallenBack : { ...configured, mode: configuredMode }),
    transition: state === 'preparing' ? 'preparing' : null,
  };
}

function sliceOf(lease: ShownLease, { board }: GpuEntity): GpuSlice[] {
  if (lease.slotStart === null) return [];
  const known = boardNamed(board);
  return [
    {
      profile: lease.profile,
      start: lease.slotStart,
      size: lease.slotSize,
      v_ram_gb: known ? vRamGb(known, lease.profile) : 0,
      ...tenantOf(lease),
      state: lease.isAwaited ? 'reserved' : lease.workloadId === null ? 'leased' : 'occupied',
    },
  ];
}

function tenantOf({ subscriptionId, workloadId }: ShownLease): GpuTenant {
  return { subscription_id: String(subscriptionId), workload_id: workloadId === null ? null : String(workloadId) };
}
