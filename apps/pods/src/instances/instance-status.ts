import type { Instance } from '@atoll/contracts/pods';
import { runStatus } from '../model/run-states.js';

/** The status that is shown for a state of the machine of its kind; that of a bare-metal host comes as it is. */
export function instanceStatus({ kind, state }: { kind: Instance['kind']; state: string }): string {
  return kind === 'baremetal' ? state : runStatus(state);
}
