interface GpuParts {
  slices: readonly { subscription_id: string }[];
  tenants: readonly { subscription_id: string }[];
}

/** Colours and names of those who hold something on these GPUs, in the order in which they are met. */
export function holdersOf(gpus: readonly GpuParts[]) {
  const ids = [...new Set(gpus.flatMap(({ slices, tenants }) => [...slices, ...tenants].map(({ subscription_id }) => subscription_id)))];
  return {
    ids,
    colourOf: (holder: string | null) => (holder === null ? null : Math.max(0, ids.indexOf(holder))),
    nameOf: (holder: string | null) => (holder === null ? 'somebody else' : `subscription ${holder}`),
  };
}
