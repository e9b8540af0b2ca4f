import { boardNamed, mpsProfile, timeSliceProfile, type Board, type SliceProfile } from '@atoll/gpu';
import type { GpuState } from '../model/gpu.machine.js';
import type { PoolEntity } from '../model/pool.entity.js';

type Terms = Pick<
  PoolEntity,
  'board' | 'mechanism' | 'profiles' | 'replicas' | 'temporalReplicas' | 'allowFallback' | 'sharingMode'
>;

/** The board of a pool, a row of which names only boards that exist. */
function boardOf({ board }: Pick<PoolEntity, 'board'>): Board {
  const found = boardNamed(board);
  if (!found) throw new Error(`There is no board ${board}.`);
  return found;
}

/** What a pool sells, from small to large. */
export function soldProfiles(pool: Terms): SliceProfile[] {
  const board = boardOf(pool);
  if (pool.mechanism === 'mig') return board.migProfiles.filter(({ name }) => pool.profiles.includes(name));
  const replicas = pool.replicas ?? 0;
  return [pool.mechanism === 'mps' ? mpsProfile(board, replicas) : timeSliceProfile(board, replicas)];
}

/** Turns of a GPU of this pool, in Temporal. */
export function turnsOf(pool: Pick<Terms, 'sharingMode' | 'replicas' | 'temporalReplicas'>): number {
  return (pool.sharingMode === 'Temporal' ? pool.replicas : pool.temporalReplicas) ?? 0;
}

/** `gpu.<board>.<profile>`: what billing calls a slice. */
export function skuOf(board: string, profile: string): string {
  return `gpu.${board}.${profile}`;
}

export const isolationOf = { mig: 'hardware', mps: 'software', time_slicing: 'none' } as const;

/** States in which what was leased before can be used. */
export const settledStates: readonly GpuState[] = ['spatial', 'temporal', 'configured_temporal'];
