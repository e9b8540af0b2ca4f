import type { ReactNode } from 'react';
import { HoldRows, useHeld } from './held-rows.js';

/**
 * What can be done with a thing in its state. While a dialog is open in it, it stays as it was when that opened, even
 * where the thing is gone: the dialog would go with the button that opened it.
 */
export function Held<Thing>({ of, children }: { of: Thing | undefined; children: (thing: Thing) => ReactNode }) {
  const [held, hold] = useHeld(of);
  const thing = held ?? of;
  return thing !== undefined && <HoldRows value={hold}>{children(thing)}</HoldRows>;
}
