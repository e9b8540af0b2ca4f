/** What a driver makes in a cluster, by the ids that the pods service has given. */
export type ObjectKind = 'pod' | 'door' | 'volume' | 'vm';

/**
 * One object in a cluster. Its name there follows from these alone, so that asking twice makes it once, and whoever comes after a crash finds it again.
 *
 * `run` counts: the runs of a pod or VM (each start is a new run), and the settings of a door (each port is a new run, so that the next can open before
 * the last one closes). A volume has run 0 for ever.
 */
export interface ObjectRef {
  readonly kind: ObjectKind;
  readonly id: string;
  readonly run: number;
}

/** Whose it is: labels of the object, and the boundary inside of which pods may reach each other. */
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
  /** NVML's id of the MIG instance; null where nothing is cut by MIG. */
  readonly instanceId: number | null;
  /** Whether the node is simulated: the pod then gets the slice's name in its environment, and no device. */
  readonly isSimulated: boolean;
}

export interface VolumeMount {
  readonly volumeId: string;
  /** Absolute, without `..`. */
  readonly path: string;
}

/** One run of a pod, whole: a driver keeps nothing of earlier runs but the volumes. */
export interface PodRun {
  readonly ref: ObjectRef;
  readonly owner: Owner;
  /** A DNS label, unique in the installation: the host name inside. */
  readonly podName: string;
  /** Normalised, with registry and tag or digest: `docker.io/library/nginx:1.27`. */
  readonly image: string;
  /** In place of the image's own; empty: the image's. Never goes through a shell. */
  readonly command: readonly string[];
  /** Secret: never logged, never shown in an error. */
  readonly env: ReadonlyMap<string, string>;
  /** Cores; null: the driver's default. */
  readonly cpu: number | null;
  /** 10^9 bytes; null: the driver's default. */
  readonly memoryGb: number | null;
  readonly slices: readonly PodSlice[];
  readonly volumes: readonly VolumeMount[];
}

export type Transport = 'tcp' | 'udp';

/** A certificate chain and its key, PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

/** An opening from outside to one port of a pod, whichever run of it is there. */
export interface Door {
  readonly ref: ObjectRef;
  readonly owner: Owner;
  readonly podId: string;
  readonly transport: Transport;
  /** Inside of the pod. */
  readonly port: number;
  /** On the cluster's public host. Reserved for this door in the database before it is asked for. */
  readonly externalPort: number;
  /** Ends TLS in front of the pod; null: bytes as they come. */
  readonly tls: Certificate | null;
}

export interface Volume {
  readonly ref: ObjectRef;
  readonly owner: Owner;
  /** 10^9 bytes. Asked for again with more, it grows; it never shrinks. */
  readonly sizeGb: number;
}

/** One run of a virtual machine. Its disk outlives the run. */
export interface VmRun {
  readonly ref: ObjectRef;
  readonly owner: Owner;
  readonly name: string;
  readonly image: string;
  readonly vcpus: number;
  /** 10^9 bytes. */
  readonly memoryGb: number;
  readonly volumes: readonly VolumeMount[];
  /** One line each, as in `authorized_keys`. */
  readonly sshKeys: readonly string[];
}
