import type { EntityManager } from 'typeorm';
import type { LogPosition, SourceLines, StoredLine } from './log-line.js';

export type LogOrder = 'asc' | 'desc';

/** Whose lines: of these sources, or of everything in these scopes. All of them are of one team. */
export interface LogScope {
  readonly teamId: string;
  readonly scopes: readonly { readonly no: number; readonly gpuaasId: string }[];
  /** Of one pod. Null: all that the scopes have. */
  readonly sources: readonly { readonly no: number }[] | null;
}

export interface LogQuery extends LogScope {
  /** From here on. */
  readonly sinceNs: bigint;
  /** Before this. */
  readonly untilNs: bigint;
  readonly order: LogOrder;
  /** Only what comes after this position in the order that is asked for. */
  readonly after: LogPosition | null;
  /** Text that a line contains, letter for letter. */
  readonly search: string | null;
  /** How long a search may look before it stops and says how far it got. It takes one step, however short this is. */
  readonly searchMs: number;
  /** Lines at most, 1 to 1000. */
  readonly limit: number;
}

export interface LogPage {
  /** In the order that was asked for. */
  readonly lines: readonly StoredLine[];
  /**
   * Up to where the range was read, the position itself included; null: all of it. A search may stop with fewer lines
   * than the limit, also with none.
   */
  readonly readTo: LogPosition | null;
}

/** Writes down how far these were read. Returns the numbers of the sources whose lines count. */
export type SaveRead<Group> = (manager: EntityManager, stored: readonly Group[]) => Promise<ReadonlySet<number>>;

/** No source has failed. */
export const noneFailed: ReadonlyMap<number, unknown> = new Map();

/**
 * Where lines are kept. A store knows teams and numbers of sources, nothing of callers.
 */
export abstract class LogStore {
  /**
   * Stores lines together with how far the logs have been read: `save` runs in a transaction with the groups whose
   * lines are stored, writes that down, and returns the numbers of the sources whose lines count; those of others are
   * kept by another replica. Returns the error of each source, by its number, whose lines could not be stored: nothing
   * of it is saved. Where this throws nothing is saved at all. What is not saved comes again, at the same positions:
   * then a line is still kept once. Throws AppError `unavailable` where the store does not answer.
   */
  abstract append<Group extends SourceLines>(
    groups: readonly Group[],
    save: SaveRead<Group>,
  ): Promise<ReadonlyMap<number, unknown>>;

  /**
   * Takes less than the deadline of a request. Throws AppError `unavailable` where the store does not answer in that
   * time.
   */
  abstract read(query: LogQuery): Promise<LogPage>;

  /** As `read`: what one request asks of a team. */
  readOfTeam(_teamId: string, queries: readonly LogQuery[]): Promise<LogPage[]> {
    return Promise.all(queries.map((query) => this.read(query)));
  }

  /**
   * Deletes lines that are older than the retention, and prepares what the next day needs. Called by time, by each
   * replica.
   */
  abstract maintain(): Promise<void>;
}
