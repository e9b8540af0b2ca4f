import { setTimeout as delay } from 'node:timers/promises';
import type { Admission } from './admission-control.js';

/** An engine may end the processes of a pod before it says that the pod ends. */
const lookMs = [0, 200, 600];
const observeMs = 2_000;
/** Shells count so: what is above is the end by a signal (128 + n), as the end of a pod is to what runs in it. */
const highestOwnCode = 128;

export const podEnded = (podName: string): string => `The pod ${podName} has stopped or restarted.`;

/**
 * For the user of a shell that ended with this code: the sentence that its pod did; null where the pod runs on, and
 * where nobody can tell.
 */
export async function podEndBehind(
  code: number | null,
  { podName, run }: Pick<Admission, 'podName' | 'run'>,
): Promise<string | null> {
  if (!run || (code !== null && code <= highestOwnCode)) return null;
  for (const waitMs of lookMs) {
    await delay(waitMs);
    const [sight] = await run.driver.observePods([run.ref], AbortSignal.timeout(observeMs)).catch(() => []);
    if (!sight) return null;
    if (sight.phase !== 'running') return podEnded(podName);
  }
  return null;
}
