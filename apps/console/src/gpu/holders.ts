interface GpuParts {
  slices: readonly { subscription_id: string | null }[];
  tenants: readonly { subscription_id: string | null }[];
}

export interface Holders {
  /** The colour of a holder, as an index in the series; null for another team. */
  colourOf: (holder: string | null) => number | null;
  nameOf: (holder: string | null) => string;
}

/** Colours and names of those who hold something on these GPUs, in the order in which they are met. */
export function holdersOf(gpus: readonly GpuParts[]): Holders {
  const held = gpus.flatMap(({ slices, tenants }) =>
    [...slices, ...tenants].flatMap(({ subscription_id }) => subscription_id ?? []),
  );
  const ids = [...new Set(held)];
  return {
    colourOf: (holder: string | null) => (holder === null ? null : Math.max(0, ids.indexOf(holder))),
    nameOf: (holder: string | null) => (holder === null ? 'another team' : `subscription ${holder}`),
  };
}
