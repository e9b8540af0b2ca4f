import { createContext, use, useCallback, useLayoutEffect, useRef, useState } from 'react';

/** Keeps the rows, and the data, around it in the page until the function that it returns is called. */
export const HoldRows = createContext<() => () => void>(() => () => undefined);

/** Rows that are rendered, of all that were found. */
export interface Shown<Row> {
  rows: readonly Row[];
  /** How many rows come before them. */
  before: number;
  total: number;
}

/** What was shown when the first opened of the dialogs that are open in it, and what holds it for a dialog. */
export function useHeld<Shown>(shown: Shown) {
  const holdAround = use(HoldRows);
  const last = useRef(shown);
  useLayoutEffect(() => void (last.current = shown));
  const [held, setHeld] = useState<{ shown: Shown; dialogs: number } | null>(null);
  const hold = useCallback(() => {
    const { current } = last;
    const letGo = holdAround();
    setHeld((before) => ({ shown: before ? before.shown : current, dialogs: (before?.dialogs ?? 0) + 1 }));
    return () => {
      letGo();
      setHeld((before) => (before && before.dialogs > 1 ? { ...before, dialogs: before.dialogs - 1 } : null));
    };
  }, [holdAround]);
  return [held?.shown, hold] as const;
}

/**
 * What a listing shows: while one of its rows has an open dialog, the rows that it showed when that opened, as they are
 * in `all` now. A dialog would be gone with its row.
 */
export function useHeldRows<Row>(shown: Shown<Row>, all: readonly Row[], keyOf: (row: Row) => string) {
  const [held, hold] = useHeld(shown);
  if (held === undefined) return [shown, hold] as const;
  const now = new Map(all.map((row) => [keyOf(row), row]));
  return [{ ...held, rows: held.rows.map((row) => now.get(keyOf(row)) ?? row) }, hold] as const;
}
