import { useSyncExternalStore } from 'react';

let isOnPaper = false;
const listeners = new Set<() => void>();

const become = (next: boolean) => (): void => {
  isOnPaper = next;
  for (const listener of listeners) listener();
};
// For as long as the page is open: what began to be printed may be gone when that ends.
addEventListener('beforeprint', become(true));
addEventListener('afterprint', become(false));

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Whether the page is being printed: nobody scrolls on paper. */
export function useOnPaper(): boolean {
  return useSyncExternalStore(subscribe, () => isOnPaper);
}
