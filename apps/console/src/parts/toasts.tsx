import { useSyncExternalStore } from 'react';
import { Button } from './button.js';

interface Toast {
  id: number;
  text: string;
}

const shownForMs = 6_000;
let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function become(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  become(toasts.filter((toast) => toast.id !== id));
}

/** Says that something was done; read aloud where a screen reader is. */
export function say(text: string): void {
  lastId += 1;
  const id = lastId;
  become([...toasts.slice(-2), { id, text }]);
  setTimeout(() => dismiss(id), shownForMs);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    // A dialog hides all that is outside it from the pointer and from screen readers, but for what is marked so.
    <div className="toasts" role="status" aria-live="polite" data-react-aria-top-layer="true">
      {shown.map(({ id, text }) => (
        <div key={id} className="toast">
          <span>{text}</span>
          <Button kind="plain" isSmall onPress={() => dismiss(id)} aria-label="Dismiss">
            ×
          </Button>
        </div>
      ))}
    </div>
  );
}
