import { StepFailed } from '@atoll/state-machine';
import { settledStates } from '../pools/pool-terms.js';
import type { HeldLease } from './lease-store.js';

const lookAgainMs = 250;

/** Whether all of it can be used: undefined. Otherwise what is waited for; throws where it never will. */
export function readiness(
  leases: readonly HeldLease[],
  vgpus: number,
): { againAfterMs: number; reason: { code: string; message: string } } | undefined {
  const lost = leases.find(({ lostReason }) => lostReason !== null);
  if (lost) throw new StepFailed('switch_failed', `The GPU could not be brought to where it was to be. ${lost.lostReason}`, true);
  if (leases.length < vgpus) throw new StepFailed('lost', 'What was reserved for it is gone.', true);
  const isReady = leases.every(({ gpuState }) => (settledStates as readonly string[]).includes(gpuState));
  return isReady
    ? undefined
    : { againAfterMs: lookAgainMs, reason: { code: 'in_transition', message: 'It waits for a GPU that is switching.' } };
}
