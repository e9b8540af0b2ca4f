/** Spatial: the GPU is cut, each slice has memory of its own. Temporal: the whole GPU is lent in turns. */
export type SharingMode = 'Spatial' | 'Temporal';

/** How: `mig` cuts in hardware, `mps` in software, `time_slicing` lends turns. */
export type Mechanism = 'mig' | 'mps' | 'time_slicing';

/** What is sold of a GPU: a MIG profile, an MPS share, or a turn. */
export interface SliceProfile {
  readonly name: string;
  /** Slots that one takes: memory slices with MIG, else 1. */
  readonly size: number;
  /** The slots where one may begin. */
  readonly starts: readonly number[];
  /** See the function `vRamGb`. */
  readonly vRamGb: number;
}

export interface Board {
  /** With its size: `A100-80GB`. */
  readonly name: string;
  /** Decimal GB, as in its name. */
  readonly memoryGb: number;
  readonly memoryMib: number;
  /** 0: the board has no MIG. */
  readonly memorySlices: 0 | 4 | 8;
  /** From small to large; empty without MIG. */
  readonly migProfiles: readonly SliceProfile[];
}

interface Geometry {
  readonly compute: number;
  readonly size: number;
  readonly starts: readonly number[];
}

/**
 * NVIDIA's MIG user guide, "Supported MIG profiles", and the placements that `nvidia-smi mig -lgipp` lists of A100,
 * H100 and GH200; taken to be the same for H200 and B200. Without the profiles with media extensions (`+me`), which are
 * the same slices.
 */
const eight: readonly Geometry[] = [
  { compute: 1, size: 1, starts: [0, 1, 2, 3, 4, 5, 6] },
  { compute: 1, size: 2, starts: [0, 2, 4, 6] },
  { compute: 2, size: 2, starts: [0, 2, 4] },
  { compute: 3, size: 4, starts: [0, 4] },
  { compute: 4, size: 4, starts: [0] },
  { compute: 7, size: 8, starts: [0] },
];

/** The same for A30 and RTX PRO 6000. */
const four: readonly Geometry[] = [
  { compute: 1, size: 1, starts: [0, 1, 2, 3] },
  { compute: 2, size: 2, starts: [0, 2] },
  { compute: 4, size: 4, starts: [0] },
];

/** MiB where NVIDIA's figure is not GB × 1024. */
function board(name: string, memoryGb: number, memorySlices: 0 | 4 | 8, memoryMib = memoryGb * 1024): Board {
  const geometries = memorySlices === 8 ? eight : memorySlices === 4 ? four : [];
  const migProfiles = geometries.map(({ compute, size, starts }) => {
    // Half up: 1g of 94 GB is 11.75, called 12; of 180 GB 22.5, called 23.
    const vRamGb = Math.floor((memoryGb * size) / memorySlices + 0.5);
    return { name: `${compute}g.${vRamGb}gb`, size, starts, vRamGb };
  });
  return { name, memoryGb, memoryMib, memorySlices, migProfiles };
}

/**
 * Every board the platform knows. Their profiles bear the names that NVIDIA's mig-parted has for them (its
 * `config-default.yaml`).
 */
export const boards: readonly Board[] = [
  board('A30-24GB', 24, 4),
  board('A100-40GB', 40, 8),
  board('A100-80GB', 80, 8),
  board('H100-80GB', 80, 8, 81_559),
  board('H100-NVL-94GB', 94, 8),
  board('GH200-96GB', 96, 8),
  board('GH200-144GB', 144, 8),
  board('H200-141GB', 141, 8),
  board('B200-180GB', 180, 8),
  board('L4-24GB', 24, 0),
  board('L40S-48GB', 48, 0),
  board('A40-48GB', 48, 0),
  board('RTX-PRO-6000-96GB', 96, 4),
];

/** By its exact name, with its size. */
export function boardNamed(name: string): Board | undefined {
  return boards.find((candidate) => candidate.name === name);
}
