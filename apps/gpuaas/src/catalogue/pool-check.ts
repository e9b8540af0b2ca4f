import type { CreatePool } from '@atoll/contracts/gpuaas';
import { type AppError, invalidField } from '@atoll/errors';
import { boardNamed, maxReplicas, type Board } from '@atoll/gpu';
import type { PoolEntity } from '../model/pool.entity.js';

type Terms = Pick<PoolEntity, 'profiles' | 'replicas' | 'overcommit' | 'allowFallback' | 'temporalReplicas'>;

/**
 * What a pool of GPUs of one board is to be, with its defaults; throws `invalid_input` that names the field and what is
 * allowed.
 */
export function poolTermsOf(asked: CreatePool, boardName: string): Terms {
  const board = boardNamed(boardName);
  if (!board) throw new Error(`There is no board ${boardName}.`);
  const isTemporal = asked.sharing_mode === 'Temporal';
  if (isTemporal !== (asked.mechanism === 'time_slicing')) {
    throw fault(
      'mechanism',
      isTemporal
        ? 'must be time_slicing where sharing_mode is Temporal.'
        : 'must be mig or mps where sharing_mode is Spatial.',
    );
  }
  const { profiles, slices } = asked.mechanism === 'mig' ? migTerms(asked, board) : replicaTerms(asked);
  return {
    profiles,
    replicas: asked.replicas ?? null,
    overcommit: asked.overcommit ?? 1,
    allowFallback: asked.allow_fallback ?? false,
    temporalReplicas: temporalReplicasOf(asked, slices),
  };
}

/** `slices`: how many of the smallest a GPU can hold. */
function migTerms({ profiles, replicas }: CreatePool, board: Board): { profiles: string[]; slices: number } {
  if (board.memorySlices === 0)
    throw fault('mechanism', `must not be mig, which ${board.name} does not support; use mps or time_slicing.`);
  if (replicas !== undefined) throw fault('replicas', 'must be left out with mig: its profiles say how a GPU is cut.');
  const known = board.migProfiles.map(({ name }) => name);
  const allowed = `profiles of ${board.name}: ${known.join(', ')}`;
  if (!profiles) throw fault('profiles', `must name what a mig pool sells, ${allowed}.`);
  const strangers = profiles.filter((name) => !known.includes(name));
  if (strangers.length > 0) throw fault('profiles', `must be ${allowed}; not ${strangers.join(', ')}.`);
  const sold = board.migProfiles.filter(({ name }) => profiles.includes(name));
  return { profiles: sold.map(({ name }) => name), slices: Math.max(...sold.map(({ starts }) => starts.length)) };
}

function replicaTerms({ mechanism, profiles, replicas }: CreatePool): { profiles: string[]; slices: number } {
  if (profiles) throw fault('profiles', 'is only allowed with mechanism mig; use replicas.');
  if (replicas === undefined)
    throw fault('replicas', `must say in how many parts each GPU is shared: from 2 to ${maxReplicas}.`);
  return { profiles: [`${mechanism === 'mps' ? 'mps' : 'ts'}-${replicas}`], slices: replicas };
}

function temporalReplicasOf(
  { sharing_mode, allow_fallback = false, temporal_replicas }: CreatePool,
  slices: number,
): number | null {
  if (sharing_mode === 'Temporal' && allow_fallback)
    throw fault('allow_fallback', 'must be false where sharing_mode is Temporal: there is nothing to fall back to.');
  if (!allow_fallback) {
    if (temporal_replicas !== undefined)
      throw fault('temporal_replicas', 'must be left out unless allow_fallback is true.');
    return null;
  }
  if (slices >= maxReplicas)
    throw fault(
      'allow_fallback',
      `must be false where a GPU has ${slices} slices: a fallback is for more, and there are at most ${maxReplicas} turns.`,
    );
  const turns = temporal_replicas ?? Math.min(maxReplicas, 2 * slices);
  if (turns <= slices) {
    throw fault(
      'temporal_replicas',
      `must be more than the ${slices} slices of a GPU, and at most ${maxReplicas}: a fallback is for what does not fit.`,
    );
  }
  return turns;
}

function fault(field: string, sentence: string): AppError {
  return invalidField(field, 'isPoolTerm', sentence);
}
