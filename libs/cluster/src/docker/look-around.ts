/** What one look tries: whether each of `others` is reached from `from`. */
export interface Look<Item> {
  readonly from: Item;
  readonly others: readonly Item[];
}

/**
 * The next look at items that have names. It begins at the first whose name is not before `last`, the name of the last
 * item of the look before it ('' for the first look), and tries that one with the `most` that come after it by name, in
 * a circle. So of n items that stay, ⌈n / most⌉ + 1 looks touch each one, and where n is at most `most` + 1, n looks
 * try each pair. Returns null for fewer than two.
 */
export function lookAround<Item extends { readonly name: string }>(
  items: readonly Item[],
  last: string,
  most: number,
): Look<Item> | null {
  const inOrder = items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const start = Math.max(
    0,
    inOrder.findIndex(({ name }) => name >= last),
  );
  const [from, ...others] = [...inOrder.slice(start), ...inOrder.slice(0, start)].slice(0, most + 1);
  return from && others.length > 0 ? { from, others } : null;
}
