import { StepFailed, type MachineError } from '@atoll/state-machine';
import { settledStates } from '../sharing/pool-terms.js';
import type { Outage, Standing } from '../sharing/lease-store.js';

const lookAgainMs = 250;

/** What a step finds of a request that cannot be granted yet. */
export interface StillWaiting {
  readonly againAfterMs: number;
  readonly reason: Omit<MachineError, 'at'>;
}

/** The reason that is shown for a request whose GPU is switching or being prepared. */
export const waitsForGpu = { code: 'in_transition', message: 'Waiting for a GPU to change its sharing mode.' };

/** The reason that is shown for a request whose GPU is out of service. */
export function waitsForOutage({ code, message, isRetried }: Outage): StillWaiting['reason'] {
  const what = `Waiting for a GPU that is out of service${isRetried ? '; its node is initialised again' : ''}.`;
  // What a former holder did not give back is no business of the next one.
  const cause = code === 'not_given_back' ? null : message?.replace(/^Deadline exceeded/, 'The GPU timed out');
  return { code: 'gpu_offline', message: cause ? `${what} ${cause}` : what };
}

/**
 * Whether what is held on one node can be used: undefined. Otherwise what is waited for; throws where it never will,
 * since of all that is held something was lost.
 */
export function readiness({ count, lostReason, outage, here }: Standing, vgpus: number): StillWaiting | undefined {
  if (lostReason !== null)
    throw new StepFailed(
      'switch_failed',
      `The GPU could not be switched to the required sharing mode. ${lostReason}`,
      true,
    );
  if (count < vgpus) throw new StepFailed('lost', 'The reserved capacity was lost.', true);
  const isReady = here.every(({ gpuState }) => (settledStates as readonly string[]).includes(gpuState));
  return isReady ? undefined : { againAfterMs: lookAgainMs, reason: outage ? waitsForOutage(outage) : waitsForGpu };
}
