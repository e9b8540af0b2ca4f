/** What is known of a pod that runs: in its row, so that any replica continues. */
export interface Idleness {
  readonly lookedAtMs: number;
  /** null: its slices are used, or it is not known. */
  readonly sinceMs: number | null;
  readonly isWarned: boolean;
}

/** As it is kept in the row of a pod. */
export interface KeptIdleness extends Idleness {
  /** Its log says why it is not stopped: its use cannot be told apart from that of others, or is not known. */
  readonly isBlind: boolean;
  /**
   * Since when each look has found that a figure is missing; null, or missing itself, where the last one has found all.
   */
  readonly unknownSinceMs?: number | null;
}
