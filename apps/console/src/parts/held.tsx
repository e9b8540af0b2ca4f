import type { ReactNode } from 'react';
import { HoldRows, useHeld } from './held-rows.js';

interface HeldProps<Thing> {
  of: Thing | undefined;
  /** `now`: the thing as it was last read. What an action does follows from that, and so must what its dialog says. */
  children: (thing: Thing, now: Thing) => ReactNode;
}

/**
 * What can be done with a thing in its state. While a dialog is open in it, it stays as it was when that opened, even
 * where the thing is gone: the dialog would go with the button that opened it.
 */
export function Held<Thing>({ of, children }: HeldProps<Thing>) {
  const [held, hold] = useHeld(of);
  const thing = held ?? of;
  return thing !== undefined && <HoldRows value={hold}>{children(thing, of ?? thing)}</HoldRows>;
}
