import type { MachineError, MachineRow } from '@atoll/state-machine';

type MayFail = Pick<MachineRow, 'state' | 'lastError'> & { readonly failure: MachineError | null };

/**
 * Of a row that fails or has failed: why. What goes wrong while its resources are given back does not take the place of
 * that.
 */
export function shownError({ state, lastError, failure }: MayFail): MachineError | null {
  return state === 'failing' || state === 'failed' ? (failure ?? lastError) : lastError;
}
