import type { Door, ObjectRef, PodRun, VmRun, Volume, VolumeRef } from './objects.js';
import type { DoorSight, FoundObject, Hint, LogBatch, RunSight, VolumeSight } from './observations.js';
import type { PodConnection, Shell, ShellRequest } from './shell.js';

/**
 * What a driver can do in the cluster that it was opened for. A caller refuses the rest beforehand, with a sentence
 * that says so.
 */
export interface Capabilities {
  /** End TLS in front of a pod. */
  readonly tls: boolean;
  readonly udp: boolean;
  /** Shared volumes; whether the cluster enforces their size. */
  readonly volumes: boolean;
  readonly volumeQuota: boolean;
  readonly vms: boolean;
  /** How a user gets a shell in a pod. `exec`: `openShell` runs a command in it. `none`: not at all. */
  readonly shell: 'exec' | 'none';
  /** Connections to the loopback of a pod: port forwarding. */
  readonly connect: boolean;
  /** Whether a port that is taken for TCP is free for UDP. */
  readonly transportsSharePorts: boolean;
}

/** The result of one check of a cluster. */
export interface ClusterCheck {
  /** `reachable`, `version`, `limits`, `disk`, `door_image`, … */
  readonly name: string;
  readonly ok: boolean;
  /** What was found, a sentence. */
  readonly detail: string;
  /** What an operator can do; null where nothing is wrong. */
  readonly howToFix: string | null;
  /** Whether no pod can start while this fails; otherwise the cluster is degraded. */
  readonly isVital: boolean;
}

/**
 * The port to where pods run: one instance for one cluster, shared by all callers of a process.
 *
 * A change is **requested and then observed**. `startPod`, `openDoor`, `makeVolume`, `stopPod` and `remove` return when
 * the cluster has accepted the request, not when it is fulfilled, and are safe to repeat. A caller repeats a request
 * for as long as what it observes differs from what it requested: a container engine has no controller that remembers a
 * request while an image is pulled, or after the process that pulled it has died. After a crash a caller continues by
 * observing; it needs nothing that an earlier instance kept in memory.
 *
 * Everything a driver creates carries the installation's id, and it changes nothing that does not. Each call throws
 * `ClusterError`, and ends soon after its signal is aborted; it changes nothing where that was so before. One slow call
 * delays no other, and a driver bounds its own connections to the cluster.
 */
export abstract class ClusterDriver {
  abstract readonly capabilities: Capabilities;

  /**
   * What tells this cluster from any other for as long as it exists, such as an engine's id. The caller keeps it when
   * the cluster is set. Another answer later means that another cluster is behind the address; nothing may be started
   * or removed there.
   */
  abstract identify(signal: AbortSignal): Promise<string>;

  /** Checks everything that pods need. Never throws for what it finds: an unreachable cluster has one failed check. */
  abstract check(signal: AbortSignal): Promise<readonly ClusterCheck[]>;

  /**
   * Requests a run of a pod, in a network that it shares with the other pods of its workspace alone. A run that has
   * ended is not started again.
   *
   * A run that is stopped must not start afterwards, although its start may be under way in another process, or in a
   * request that the cluster is still at when the process is dead. So a driver asks `isWanted` once `observePods` of
   * any process sees the run, and before anything of it runs; it starts just what was there when it asked, unless
   * another process has started it since, and removes it where the answer is false. A caller decides first that a run
   * is to end, so that `isWanted` is false from then on and stays so, and looks at the cluster afterwards: either it
   * finds the run, or the driver is told that it is not wanted. Where `isWanted` fails, nothing starts.
   *
   * A driver may also ask `isWanted` after this has resolved, while it pulls the image: it goes on only for what is
   * wanted.
   */
  abstract startPod(pod: PodRun, isWanted: () => Promise<boolean>, signal: AbortSignal): Promise<void>;
  /**
   * Requests the end of a run: TERM, and KILL after the grace. Its log stays readable, except where nothing but its
   * removal ends the run; it is `absent` then.
   */
  abstract stopPod(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void>;
  /** In the order of `refs`. */
  abstract observePods(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]>;

  /**
   * Requests a door. Several runs of one door may be open at once, on different ports. Requested again with another
   * certificate, an open door serves the new one, and connections that are open continue. One of the same name that
   * leads elsewhere, such as one that outlived its row in a restored database, is replaced.
   */
  abstract openDoor(door: Door, signal: AbortSignal): Promise<void>;
  abstract observeDoors(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly DoorSight[]>;

  /** Requests a volume, or a larger size of one. */
  abstract makeVolume(volume: Volume, signal: AbortSignal): Promise<void>;
  abstract observeVolumes(refs: readonly VolumeRef[], signal: AbortSignal): Promise<readonly VolumeSight[]>;

  /** As `startPod`. The guest of a run that is there already is told the keys. */
  abstract startVm(vm: VmRun, isWanted: () => Promise<boolean>, signal: AbortSignal): Promise<void>;
  abstract stopVm(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void>;
  abstract observeVms(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]>;

  /**
   * Requests the removal of an object in any state; `absent` says when it is gone. A volume goes with its data, the
   * last run of a VM with its disk. Throws `in_use` while something holds it, such as a pod that mounts the volume.
   */
  abstract remove(ref: ObjectRef, signal: AbortSignal): Promise<void>;

  /**
   * Lists every object of this installation, so that a caller finds those that the database does not know. A driver
   * also removes supporting objects here that are no longer used, such as networks.
   */
  abstract list(signal: AbortSignal): AsyncIterable<FoundObject>;
  /**
   * Hints of changes, until the signal is aborted. Throws when the connection is lost; what changed meanwhile is found
   * by observing.
   */
  abstract watch(signal: AbortSignal): AsyncIterable<Hint>;

  /**
   * The lines of a run after a cursor, or from its start, also those that it wrote while nobody read: batch after batch
   * as they are written, until all are read or the signal is aborted. Throws `not_found` where the run is gone or has
   * not started yet, and has no log.
   */
  abstract readLogs(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncIterable<LogBatch>;

  /** Throws `not_found` if the run is not running, `not_supported` if `capabilities.shell` is not `exec`. */
  abstract openShell(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell>;
  /**
   * Connects to a TCP port of the loopback inside a pod. Throws `refused` before any byte where nothing listens,
   * `not_found` as above.
   */
  abstract connect(ref: ObjectRef, port: number, signal: AbortSignal): Promise<PodConnection>;

  /** Closes connections, shells and log readers. What runs in the cluster continues. */
  abstract close(): Promise<void>;
}
