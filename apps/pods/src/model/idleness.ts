/** What is known of a pod that runs: in its row, so that any replica continues. */
export interface Idleness {
  readonly lookedAtMs: number;
  /** null: its slices are used, or it is not known. */
  readonly sinceMs: number | null;
  readonly isWarned: boolean;
}

/** As it is kept in the row of a pod. */
export interface KeptIdleness extends Idleness {
  /** Its log says that its use cannot be told apart from that of others. */
  readonly isBlind: boolean;
}
