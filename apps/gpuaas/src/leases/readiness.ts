import { StepFailed } from '@atoll/state-machine';
import { settledStates } from '../pools/pool-terms.js';
import type { HeldLease } from './lease-store.js';

const lookAgainMs = 250;

/**
 * Whether what is held on one node can be used: undefined. Otherwise what is waited for; throws where it never will,
 * since of all that is held something was lost.
 */
export function readiness(
  all: { readonly count: number; readonly lostReason: string | null },
  here: readonly HeldLease[],
  vgpus: number,
): { againAfterMs: number; reason: { code: string; message: string } } | undefined {
  if (all.lostReason !== null)
    throw new StepFailed('switch_failed', `The GPU could not be brought to where it was to be. ${all.lostReason}`, true);
  if (all.count < vgpus) throw new StepFailed('lost', 'What was reserved for it is gone.', true);
  const isReady = here.every(({ gpuState }) => (settledStates as readonly string[]).includes(gpuState));
  return isReady
    ? undefined
    : { againAfterMs: lookAgainMs, reason: { code: 'in_transition', message: 'It waits for a GPU that is switching.' } };
}
