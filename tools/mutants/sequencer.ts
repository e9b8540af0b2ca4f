/** Runs the spec files in the order of `ATOLL_MUTANTS_ORDER`, a JSON array of paths. */
class Sequencer {
  sort<T extends { readonly path: string }>(tests: readonly T[]): T[] {
    const order = JSON.parse(process.env.ATOLL_MUTANTS_ORDER ?? '[]') as string[];
    return tests.toSorted((one, other) => order.indexOf(one.path) - order.indexOf(other.path));
  }

  cacheResults(): void {}
}

export { Sequencer as default };
