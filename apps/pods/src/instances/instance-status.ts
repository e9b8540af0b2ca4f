import type { Instance } from '@atoll/contracts/pods';
import { podStatus } from '../pods/pod-view.js';
import { vmStatus } from '../vms/vm-view.js';

/** The status that is shown for a state of the machine of its kind; that of a bare-metal host comes as it is. */
export function instanceStatus({ kind, state }: { kind: Instance['kind']; state: string }): string {
  if (kind === 'pod') return podStatus(state);
  return kind === 'vm' ? vmStatus(state) : state;
}
