import { MachineRow, type MachineError } from '@atoll/state-machine';
import { Column } from 'typeorm';

/** A row of which a cluster has something, so that it may fail. */
export abstract class FailingRow extends MachineRow {
  /**
   * Why it failed; written when it begins to fail, and not by what goes wrong while it ends. Counts only while it is
   * `failing` or `failed`.
   */
  @Column('jsonb', { nullable: true })
  failure!: MachineError | null;
}

type MayFail = Pick<FailingRow, 'state' | 'lastError' | 'failure'>;

/**
 * Of a row that fails or has failed: why. What goes wrong while its resources are given back does not take the place of
 * that.
 */
export function shownError({ state, lastError, failure }: MayFail): MachineError | null {
  return state === 'failing' || state === 'failed' ? (failure ?? lastError) : lastError;
}
