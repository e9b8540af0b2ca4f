import type { ClusterErrorCode } from './cluster-error.js';
import type { ObjectRef } from './objects.js';

/** Why an object is not as it was requested, in words for its team. */
export interface Trouble {
  readonly code: ClusterErrorCode;
  readonly message: string;
}

/** How a run ended. */
export interface Exit {
  /** 0 to 255; null where the cluster cannot tell. */
  readonly code: number | null;
  /**
   * `probably`: killed under a memory limit, by an engine that does not tell why. It cannot be told from a KILL after
   * the grace of `stopPod`, so a caller that has requested the end ignores it.
   */
  readonly outOfMemory: 'yes' | 'probably' | 'no';
  /** Any further reason that the cluster gives, a sentence for the team, such as the eviction from a node. */
  readonly reason: string | null;
  readonly at: Date;
}

/** How far the pull of an image is; null: not known. */
export interface PullProgress {
  readonly doneBytes: number | null;
  /** Of the layers whose size is known so far. */
  readonly totalBytes: number | null;
}

/**
 * A run of a pod or VM as the cluster has it.
 *
 * `absent`: no such object. `preparing`: its image is pulled, a node is found, or a start was cut short; `trouble` says
 * what prevents it, and is permanent where waiting does not help. `running`: `trouble` says if its node is out of
 * reach. `stopping`. `ended`: what is left of it, its log, is there until `remove`.
 */
export type RunSight =
  | { readonly phase: 'absent' }
  | { readonly phase: 'preparing'; readonly pull: PullProgress | null; readonly trouble: Trouble | null }
  | { readonly phase: 'running'; readonly startedAt: Date; readonly trouble: Trouble | null }
  | { readonly phase: 'stopping' }
  | { readonly phase: 'ended'; readonly startedAt: Date | null; readonly exit: Exit };

/**
 * `open`: a connection from outside to `host` reaches the pod or, where the pod does not accept it, is closed. `host`
 * is null where that is the cluster's public host; a cluster of several hosts names the one that the door is on.
 * `opening`: not yet; `trouble` as above.
 */
export type DoorSight =
  | { readonly phase: 'absent' }
  | { readonly phase: 'opening'; readonly trouble: Trouble | null }
  | { readonly phase: 'open'; readonly host: string | null };

export type VolumeSight =
  | { readonly phase: 'absent' }
  | { readonly phase: 'preparing'; readonly trouble: Trouble | null }
  /** `sizeGb`: null if the cluster enforces no size. `usedBytes`: null while the cluster has no figure. */
  | { readonly phase: 'ready'; readonly sizeGb: number | null; readonly usedBytes: number | null };

/** An object of this installation that exists in the cluster, whether the database knows it or not. */
export interface FoundObject {
  readonly ref: ObjectRef;
  readonly createdAt: Date;
  /** A run that was created and never started: nothing of it can be lost. */
  readonly isUnstarted?: boolean;
}

/** This object may have changed. A hint may come late, twice or never, and says nothing of what the object is now. */
export type Hint = Pick<ObjectRef, 'kind' | 'id' | 'run'>;

/** A line that a run has written. */
export interface LogLine {
  /** ISO 8601 in UTC, with nanoseconds where the cluster has them. Never decreases within a run. */
  readonly timestamp: string;
  /** null where the cluster cannot tell. */
  readonly stream: 'stdout' | 'stderr' | null;
  /**
   * Without its line break; invalid UTF-8 is replaced. At most 16 KiB of UTF-8: the rest of a longer line is dropped,
   * and `isCut` is set. A line that the pod does not end within some seconds, such as a progress bar, comes in several
   * pieces.
   */
  readonly message: string;
  readonly isCut: boolean;
}

/**
 * Lines in the order in which they were written, and where to continue after them. One without lines says that
 * `isCurrent` has changed, and nothing else.
 */
export interface LogBatch {
  readonly lines: readonly LogLine[];
  /**
   * Opaque. The caller stores it in the transaction that stores the lines; reading on from it neither loses nor doubles
   * a line, however many share an instant.
   */
  readonly cursor: string;
  /** The run has ended, and everything that it wrote has been read. */
  readonly isComplete: boolean;
  /**
   * All that the run had written two seconds ago has been given with this batch, also where it writes nothing for hours
   * from now on. False while older lines are still to come, and while a line is open.
   */
  readonly isCurrent: boolean;
}
