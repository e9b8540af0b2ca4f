import type { Board, SliceProfile } from './boards.js';

/** Parts that a GPU can be shared in; NVIDIA's MPS takes at most 48 clients. */
export const minReplicas = 2;
export const maxReplicas = 48;

/**
 * One of `replicas` MPS clients, each with floor(total MiB / replicas) MiB and floor(100 / replicas) % of the threads.
 */
export function mpsProfile(board: Board, replicas: number): SliceProfile {
  return replicaProfile(board, `mps-${replicas}`, replicas);
}

/** One of `replicas` turns. Its memory is nominal: every tenant sees the whole device. */
export function timeSliceProfile(board: Board, replicas: number): SliceProfile {
  return replicaProfile(board, `ts-${replicas}`, replicas);
}

function replicaProfile({ name: boardName, memoryMib }: Board, name: string, replicas: number): SliceProfile {
  if (!Number.isInteger(replicas) || replicas < minReplicas || replicas > maxReplicas) {
    throw new RangeError(`${boardName} cannot be shared in ${replicas} parts; use ${minReplicas} to ${maxReplicas}.`);
  }
  const mib = Math.floor(memoryMib / replicas);
  return {
    name,
    size: 1,
    starts: Array.from({ length: replicas }, (_, at) => at),
    vRamGb: Math.round((mib / 1024) * 100) / 100,
  };
}

/**
 * GB of memory of a slice of this profile: with MIG k/n of the board's decimal GB rounded half up, the number in
 * NVIDIA's name of the profile; with MPS and time slicing floor(total MiB / n) / 1024, to two decimals. Throws
 * RangeError for a profile that the board does not have.
 */
export function vRamGb(board: Board, profile: string): number {
  const [, kind, replicas] = /^(mps|ts)-([1-9]\d*)$/.exec(profile) ?? [];
  if (kind === 'mps') return mpsProfile(board, Number(replicas)).vRamGb;
  if (kind === 'ts') return timeSliceProfile(board, Number(replicas)).vRamGb;
  const found = board.migProfiles.find(({ name }) => name === profile);
  if (!found) throw new RangeError(`${board.name} has no profile ${profile}.`);
  return found.vRamGb;
}
