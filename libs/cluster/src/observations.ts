import type { ClusterErrorCode } from './cluster-error.js';
import type { ObjectRef } from './objects.js';

/** Why something is not as it was asked for, in words for its team. */
export interface Trouble {
  readonly code: ClusterErrorCode;
  readonly message: string;
}

/** How a run ended. */
export interface Exit {
  /** 0 to 255; null where the cluster cannot say. */
  readonly code: number | null;
  /** `probably`: killed without having been asked, under a memory limit, by an engine that does not tell. */
  readonly outOfMemory: 'yes' | 'probably' | 'no';
  readonly at: Date;
}

/**
 * A run of a pod or VM as the cluster has it.
 *
 * `absent`: no such object. `preparing`: the image is being pulled, or a node is looked for; `trouble` says what is in the way, and is permanent where
 * waiting will not help. `running`, `stopping`. `ended`: it is over, and what is left of it (its log) is there until `remove`.
 */
export type RunSight =
  | { readonly phase: 'absent' }
  | { readonly phase: 'preparing'; readonly isPulling: boolean; readonly trouble: Trouble | null }
  | { readonly phase: 'running'; readonly startedAt: Date }
  | { readonly phase: 'stopping' }
  | { readonly phase: 'ended'; readonly startedAt: Date | null; readonly exit: Exit };

/** `open`: a connection from outside reaches the pod, or is refused by it. `opening`: not yet; `trouble` as above. */
export type DoorSight =
  { readonly phase: 'absent' } | { readonly phase: 'opening'; readonly trouble: Trouble | null } | { readonly phase: 'open' };

export type VolumeSight =
  | { readonly phase: 'absent' }
  | { readonly phase: 'preparing'; readonly trouble: Trouble | null }
  /** `usedBytes`: null where the cluster has no figure. */
  | { readonly phase: 'ready'; readonly sizeGb: number; readonly usedBytes: number | null };

/** An object of this installation that the cluster holds, whether the database knows it or not. */
export interface FoundObject {
  readonly ref: ObjectRef;
  readonly createdAt: Date;
}

/** Something about this object may have changed. A hint: it may come late, twice or never, and says nothing of what the object is now. */
export type Hint = ObjectRef;

/** A line that a run has written. */
export interface LogLine {
  /** ISO 8601 in UTC with nanoseconds where the cluster has them; rises within a run or stays equal. */
  readonly timestamp: string;
  readonly stream: 'stdout' | 'stderr';
  /** Without its line break; cut at 16 KiB of UTF-8, and then `isCut`. */
  readonly message: string;
  readonly isCut: boolean;
}

/** Lines in the order in which they were written, and where to go on after them. */
export interface LogBatch {
  readonly lines: readonly LogLine[];
  /**
   * Opaque to the reader, kept in the transaction that keeps the lines: reading on from it neither loses nor doubles a line, whatever line shares an
   * instant with another.
   */
  readonly cursor: string;
  /** The run has ended and everything it wrote has been read. */
  readonly isComplete: boolean;
}
