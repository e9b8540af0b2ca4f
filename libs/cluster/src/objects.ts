/** The kinds of objects that a driver creates, by ids that the pods service chooses. */
export type ObjectKind = 'pod' | 'door' | 'volume' | 'vm';

/**
 * One object in a cluster. Its name there follows from these fields alone, so that a repeated request creates it once,
 * and a process that starts after a crash finds it again.
 *
 * `run` is a counter: each start of a pod or VM is a new run, and so is each external port of a door, so that the next
 * can open before the last one closes. A volume has run 0.
 */
export type ObjectRef = RunRef | VolumeRef;

export interface RunRef {
  readonly kind: Exclude<ObjectKind, 'volume'>;
  /** Lower-case letters, digits and `-`, at most 50. */
  readonly id: string;
  readonly run: number;
}

/**
 * A volume of one team. A cluster may have one of another team under the same id: ids are numbers of the database, and
 * one that was restored from a backup gives again what it had given after that backup. To the driver they are two
 * volumes.
 */
export interface VolumeRef {
  readonly kind: 'volume';
  readonly id: string;
  readonly run: 0;
  readonly teamId: string;
}

/** The team of an object, and the workspace whose pods may reach each other. */
export interface Owner {
  readonly teamId: string;
  readonly workspaceId: string;
}

/** A GPU slice that a pod gets: what its lease holds. */
export interface PodSlice {
  readonly leaseId: string;
  /** The inventory's name of the node. All slices of a pod are on one node. */
  readonly nodeName: string;
  readonly gpuUuid: string;
  readonly board: string;
  /** `1g.10gb`, `mps-4`, `ts-4`, or the whole board. */
  readonly profile: string;
  /** First memory slice of a MIG instance; null for MPS shares and turns. */
  readonly slotStart: number | null;
  /**
   * NVML's id and UUID of the MIG instance; null where the GPU is not partitioned. A UUID comes back when a slice is
   * cut anew at the same place.
   */
  readonly instanceId: number | null;
  readonly instanceUuid: string | null;
  /** Whether the node is simulated: the pod then gets the slice's name in its environment, and no device. */
  readonly isSimulated: boolean;
}

/** Of a volume of the team that mounts it. */
export interface VolumeMount {
  readonly volumeId: string;
  /** Absolute, without `..`. */
  readonly path: string;
}

/** One run of a pod, complete: of earlier runs a driver keeps nothing but the volumes. */
export interface PodRun {
  readonly ref: RunRef;
  /**
   * When this run was requested, the same at each try. It tells the run from another one of the same number: a database
   * that was restored gives numbers again.
   */
  readonly requestedAt: Date;
  readonly owner: Owner;
  /** The person who requested it, for turns that people take across teams; null: none is known. */
  readonly requestedBy?: string | null;
  /** A DNS label, unique in the installation: the host name inside, and its name for other pods of the workspace. */
  readonly podName: string;
  /** Normalised, with registry and tag or digest: `docker.io/library/nginx:1.27`. */
  readonly image: string;
  /** Replaces the image's entry point and command; empty: the image's. Never passed to a shell. */
  readonly command: readonly string[];
  /** Secret: never logged, never part of an error. */
  readonly env: ReadonlyMap<string, string>;
  /** Cores; null: the driver's default. */
  readonly cpu: number | null;
  /** 10^9 bytes; null: the driver's default. */
  readonly memoryGb: number | null;
  readonly slices: readonly PodSlice[];
  readonly volumes: readonly VolumeMount[];
}

type Transport = 'tcp' | 'udp';

/** A certificate chain and its key, PEM. The key is secret. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

/** An opening from outside to one port of a pod, for whichever run of the pod exists. */
export interface Door {
  readonly ref: RunRef;
  readonly owner: Owner;
  readonly podId: string;
  readonly transport: Transport;
  /** Inside the pod. */
  readonly port: number;
  /** On the cluster's public host. Reserved for this door in the database before it is requested. */
  readonly externalPort: number;
  /** Ends TLS in front of the pod; null: bytes pass unchanged. */
  readonly tls: Certificate | null;
}

export interface Volume {
  readonly ref: VolumeRef;
  readonly workspaceId: string;
  /** 10^9 bytes. Requested again with more, it grows; it never shrinks. */
  readonly sizeGb: number;
}

/** One run of a virtual machine. Its disk outlives the run. */
export interface VmRun {
  readonly ref: RunRef;
  readonly owner: Owner;
  readonly name: string;
  readonly image: string;
  readonly vcpus: number;
  /** 10^9 bytes. */
  readonly memoryGb: number;
  readonly volumes: readonly VolumeMount[];
  /** One line each, as in `authorized_keys`. Requested again with others, a VM that runs lets in those alone. */
  readonly sshKeys: readonly string[];
}
