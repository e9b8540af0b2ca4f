import { useSyncExternalStore } from 'react';

const stepMs = 30_000;
let nowMs = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  nowMs = Date.now();
  for (const listener of listeners) listener();
}, stepMs);

/**
 * Epoch milliseconds, in steps of half a minute: what depends on it is drawn again when it moves, and not meanwhile.
 */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => nowMs,
  );
}
