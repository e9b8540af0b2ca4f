import { AppError } from '@atoll/errors';
import type { KnownPool } from '../sharing/pool-catalogue.js';

export interface Fit {
  readonly profile: string;
  readonly count: number;
}

/**
 * AppError `insufficient_capacity`: names the request, and how much of each single profile would be accepted instead.
 */
export function capacityRefusal(
  { poolName }: Pick<KnownPool, 'poolName'>,
  { profile, vgpus }: { readonly profile: string; readonly vgpus: number },
  { fits, isQueueFull = false }: { readonly fits: readonly Fit[]; readonly isQueueFull?: boolean },
): AppError {
  const asked = `${vgpus} ${vgpus === 1 ? 'vGPU' : 'vGPUs'} of ${profile}`;
  if (isQueueFull) {
    const sentence = `Pool ${poolName} has no capacity for ${asked} yet, and too many requests wait for it already: in all, of the team, or of yours. Retry in a minute.`;
    return new AppError('insufficient_capacity', sentence);
  }
  const available = fits.filter(({ count }) => count > 0).map((fit) => `${fit.count} of ${fit.profile}`);
  return new AppError(
    'insufficient_capacity',
    `Pool ${poolName} has no capacity for ${asked}. Available: ${available.length > 0 ? available.join(', or ') : 'nothing'}.`,
  );
}
