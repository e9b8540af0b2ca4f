/** An old call, and what a client of the main API asks for the same. */
export interface CompatCase {
  readonly name: string;
  readonly old: () => Promise<unknown>;
  readonly main: () => Promise<unknown>;
  /** Of the rounds of others, the share that this one gets: for what takes long, or uses something up. */
  readonly share?: number;
}
