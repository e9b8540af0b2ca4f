import { createContext, useCallback, useLayoutEffect, useRef, useState } from 'react';

/** Keeps the rows of the listing around it in the page, until the function that it returns is called. */
export const HoldRows = createContext<() => () => void>(() => () => undefined);

/** Rows that are rendered, of all that were found. */
export interface Shown<Row> {
  rows: readonly Row[];
  /** How many rows come before them. */
  before: number;
  total: number;
}

/**
 * What a listing shows: while one of its rows has an open dialog, the rows that it showed when that opened, as they are
 * in `all` now. A dialog would be gone with its row.
 */
export function useHeldRows<Row>(shown: Shown<Row>, all: readonly Row[], keyOf: (row: Row) => string) {
  const last = useRef(shown);
  useLayoutEffect(() => void (last.current = shown));
  const [held, setHeld] = useState<{ shown: Shown<Row>; dialogs: number } | null>(null);
  const hold = useCallback(() => {
    const { current } = last;
    setHeld((before) => ({ shown: before?.shown ?? current, dialogs: (before?.dialogs ?? 0) + 1 }));
    return () =>
      setHeld((before) => (before && before.dialogs > 1 ? { ...before, dialogs: before.dialogs - 1 } : null));
  }, []);
  if (held === null) return [shown, hold] as const;
  const now = new Map(all.map((row) => [keyOf(row), row]));
  return [{ ...held.shown, rows: held.shown.rows.map((row) => now.get(keyOf(row)) ?? row) }, hold] as const;
}
