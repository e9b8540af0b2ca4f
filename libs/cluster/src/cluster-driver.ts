import type { Door, ObjectRef, PodRun, VmRun, Volume } from './objects.js';
import type { DoorSight, FoundObject, Hint, LogBatch, RunSight, VolumeSight } from './observations.js';
import type { PodConnection, Shell, ShellRequest } from './shell.js';

/** What a driver can do in the cluster that it was opened for. What it cannot is refused beforehand, with a sentence that says so. */
export interface Capabilities {
  /** End TLS in front of a pod. */
  readonly tls: boolean;
  readonly udp: boolean;
  /** Shared volumes, and whether their used bytes are known. */
  readonly volumes: boolean;
  readonly volumeUsage: boolean;
  readonly vms: boolean;
  /**
   * How somebody gets into a pod: `exec` runs a command in it (`openShell`); `sshd` has one listening inside, which is reached by `connect` to this port;
   * `none`: not at all.
   */
  readonly shell: { readonly by: 'exec' } | { readonly by: 'sshd'; readonly port: number } | { readonly by: 'none' };
  /** Connections into a pod's own network: port forwarding. */
  readonly connect: boolean;
  /** `engine`: lines written while nobody read are still there, until the run is removed. `store`: a collector of the cluster's own keeps them elsewhere. */
  readonly logHistory: 'engine' | 'store';
  /** Whether a port taken by TCP is free for UDP. */
  readonly transportsSharePorts: boolean;
  /** GPUs are given by slice, or only by whole node. */
  readonly granularity: 'slice' | 'node';
}

/** One thing that was looked at in a cluster. */
export interface ClusterCheck {
  /** `reachable`, `credentials`, `version`, `disk`, `door_image`, … */
  readonly name: string;
  readonly ok: boolean;
  /** What was found, a sentence. */
  readonly detail: string;
  /** What an operator can do; null where all is well. */
  readonly howToFix: string | null;
  /** Whether nothing new can run while this is not well; else the cluster is merely degraded. */
  readonly isVital: boolean;
}

/**
 * The port to where pods run: one instance for one cluster, shared by all of this process's steps.
 *
 * A change is **asked for and then observed**: `start…`, `open…`, `stop…`, `remove` return when the cluster has taken the wish, not when it is fulfilled,
 * and are safe to repeat; `observe…` tells what is there, so that whoever comes after a crash goes on by looking. Everything that a driver makes carries
 * the installation's id, and it touches nothing that does not. Each call throws `ClusterError` and ends soon after the signal is aborted. One slow call
 * delays no other; a driver bounds its connections to the cluster by itself.
 */
export abstract class ClusterDriver {
  abstract readonly capabilities: Capabilities;

  /**
   * What tells this cluster from any other, for as long as it lives, such as an engine's id. It is kept when the cluster is set; a different answer later means
   * that another cluster is behind the address, and nothing is started or removed there.
   */
  abstract identify(signal: AbortSignal): Promise<string>;

  /** Looks at everything that pods need. Throws nothing for what it finds: a cluster that is away has one check that is not well. */
  abstract check(signal: AbortSignal): Promise<readonly ClusterCheck[]>;

  /** Asks for a run of a pod, in its own network with the other pods of its workspace alone. */
  abstract startPod(pod: PodRun, signal: AbortSignal): Promise<void>;
  /** Asks the run to end: TERM, and KILL after the grace. Its log stays readable. */
  abstract stopPod(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void>;
  /** In the order asked for. */
  abstract observePods(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]>;

  /** Asks for an opening. Another run of the same door may be open at the same time. */
  abstract openDoor(door: Door, signal: AbortSignal): Promise<void>;
  abstract observeDoors(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly DoorSight[]>;
  /** Ports of the public host, of those given, that something else holds now. A hint for choosing; `openDoor` is the truth. */
  abstract busyPorts(ports: readonly number[], signal: AbortSignal): Promise<ReadonlySet<number>>;

  /** Asks for a volume, or for more of it. */
  abstract makeVolume(volume: Volume, signal: AbortSignal): Promise<void>;
  abstract observeVolumes(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly VolumeSight[]>;

  abstract startVm(vm: VmRun, signal: AbortSignal): Promise<void>;
  abstract stopVm(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void>;
  abstract observeVms(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]>;

  /** Asks for an object to be gone, whatever state it is in; `absent` says when it is. With a volume goes its data, with a VM's last run its disk. */
  abstract remove(ref: ObjectRef, signal: AbortSignal): Promise<void>;

  /** Everything of this installation, for finding what the database does not know. */
  abstract list(signal: AbortSignal): AsyncIterable<FoundObject>;
  /** Hints of changes, until the signal is aborted; throws when the connection is lost. */
  abstract watch(signal: AbortSignal): AsyncIterable<Hint>;

  /**
   * The lines of a run after a cursor, or from the beginning: batch after batch as they are written, until it is complete or the signal is aborted. Throws
   * `not_found` where the run is gone.
   */
  abstract readLogs(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncIterable<LogBatch>;

  /** `not_found` where the run is not running, `not_supported` where `capabilities.shell` is not `exec`. */
  abstract openShell(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell>;
  /** A connection to an address as the pod itself would dial it: 127.0.0.1 is the pod's own. Throws `refused` before any byte where nothing listens. */
  abstract connect(ref: ObjectRef, address: { host: string; port: number }, signal: AbortSignal): Promise<PodConnection>;

  /** Lets go of connections. What runs in the cluster goes on. */
  abstract close(): Promise<void>;
}
