import { useSyncExternalStore } from 'react';

let isOnPaper = false;

function subscribe(listener: () => void): () => void {
  const become = (next: boolean) => () => {
    isOnPaper = next;
    listener();
  };
  const [begin, end] = [become(true), become(false)];
  addEventListener('beforeprint', begin);
  addEventListener('afterprint', end);
  return () => {
    removeEventListener('beforeprint', begin);
    removeEventListener('afterprint', end);
  };
}

/** Whether the page is being printed: nobody scrolls on paper. */
export function useOnPaper(): boolean {
  return useSyncExternalStore(subscribe, () => isOnPaper);
}
