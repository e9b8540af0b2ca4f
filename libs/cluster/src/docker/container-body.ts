import { ClusterError } from '../cluster-error.js';
import type { PodRun, PodSlice } from '../objects.js';
import type { EngineKind } from './engine.js';
import { aliasOf, type Names } from './names.js';

/** What a pod gets where its run says nothing. */
export interface PodDefaults {
  /** Cores. */
  readonly cpu: number;
  /** 10^9 bytes. */
  readonly memoryGb: number;
}

export interface PodContainer {
  readonly network: string;
  readonly kind: EngineKind;
  /** Volumes by the engine's names. */
  readonly mounts: readonly { readonly source: string; readonly path: string }[];
  readonly defaults: PodDefaults;
  /** The CDI device of a slice on a real node, such as `nvidia.com/gpu=GPU-…`. */
  readonly cdiDeviceOf: (slice: PodSlice) => string;
}

/**
 * Docker's default capabilities without those that a workload does not need and an attacker does: NET_RAW (forged
 * packets on the bridge of the workspace), MKNOD, AUDIT_WRITE, SETPCAP. With the rest root, apt, pip and su work
 * inside.
 */
const capabilities = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETUID',
  'SYS_CHROOT',
];
const processesAtMost = 4_096;
/**
 * Of the log of one run, on the disk of the engine. Docker keeps the last quarters; Podman empties the file when it is
 * full.
 */
const logBytes = 512 * 1024 * 1024;
const gigabyte = 1e9;
/** The kernel shares CPU time in periods of so many microseconds: sched-bwc in the kernel's documentation. */
const cpuPeriodUs = 100_000;

/** The settings that both forms of the request are made of. */
function settingsOf(pod: PodRun, names: Names, container: PodContainer) {
  const { defaults, cdiDeviceOf, mounts, network } = container;
  const memory = Math.round((pod.memoryGb ?? defaults.memoryGb) * gigabyte);
  return {
    name: names.of(pod.ref),
    network,
    aliases: [aliasOf(pod.ref.id), pod.podName],
    labels: names.podLabels(pod),
    env: { ...Object.fromEntries(pod.env), ...gpuEnv(pod.slices) },
    cpu: pod.cpu ?? defaults.cpu,
    memory,
    // Shared memory counts as the pod's; the usual 64 MB stop data loaders of PyTorch.
    sharedMemory: Math.round(memory / 2),
    devices: pod.slices.filter(({ isSimulated }) => !isSimulated).map(cdiDeviceOf),
    mounts,
  };
}

/**
 * `void`: an image or a runtime that trusts `NVIDIA_VISIBLE_DEVICES` opens no device besides those of the CDI
 * specification.
 */
function gpuEnv(slices: readonly PodSlice[]): Record<string, string> {
  const named = slices.map(
    ({ gpuUuid, profile, slotStart }) => `${gpuUuid}:${profile}${slotStart === null ? '' : `@${slotStart}`}`,
  );
  return { NVIDIA_VISIBLE_DEVICES: 'void', ATOLL_SLICES: named.join(',') };
}

/**
 * None, whatever the image says: the engine starts a process for each check, as often as each millisecond, and no limit
 * of the pod bounds what that costs.
 */
const healthcheck = { Test: ['NONE'] };

/** For `POST /containers/create`. */
export function dockerBody(pod: PodRun, names: Names, container: PodContainer): object {
  const { network, aliases, labels, env, cpu, memory, sharedMemory, devices, mounts } = settingsOf(
    pod,
    names,
    container,
  );
  const [entry] = pod.command;
  return {
    Image: pod.image,
    Hostname: pod.podName,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(entry !== undefined && { Entrypoint: pod.command, Cmd: [] }),
    Healthcheck: healthcheck,
    Labels: labels,
    // Of a removal, which waits for nothing; `stop` says its own.
    StopTimeout: 0,
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: aliases } } },
    HostConfig: {
      ...confinement,
      Init: true,
      NetworkMode: network,
      CapAdd: capabilities,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(cpu * 1e9),
      PidsLimit: processesAtMost,
      ShmSize: sharedMemory,
      LogConfig: { Type: 'json-file', Config: logLimit(logBytes, container.kind) },
      Mounts: mounts.map(({ path, source }) => ({ Type: 'volume', Source: source, Target: path })),
      ...(devices.length > 0 && { DeviceRequests: [{ Driver: 'cdi', DeviceIDs: devices }] }),
    },
  };
}

/** Of every container of ours. The default seccomp profile stays, since no other is named. */
export const confinement = {
  Privileged: false,
  CapDrop: ['ALL'],
  SecurityOpt: ['no-new-privileges'],
  IpcMode: 'private',
  RestartPolicy: { Name: 'no' },
} as const;

/** The `HostConfig` of a container that Atoll itself needs: it writes nothing, and nobody reads its output. */
export function smallBody(memoryBytes: number, processesAtMost: number): object {
  return {
    ...confinement,
    ReadonlyRootfs: true,
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    PidsLimit: processesAtMost,
    LogConfig: { Type: 'none' },
  };
}

export function logLimit(bytes: number, kind: EngineKind): Record<string, string> {
  return kind === 'podman'
    ? { 'max-size': String(bytes) }
    : { 'max-size': String(Math.round(bytes / 4)), 'max-file': '4' };
}

/**
 * The same for Podman's own API: its Docker API ignores `DeviceRequests`, so that a pod would silently run without its
 * GPU. https://docs.podman.io/en/latest/_static/api.html, ContainerCreateLibpod
 */
export function libpodBody(pod: PodRun, names: Names, container: PodContainer): object {
  const { name, network, aliases, labels, env, cpu, memory, sharedMemory, devices, mounts } = settingsOf(
    pod,
    names,
    container,
  );
  const [entry] = pod.command;
  return {
    name,
    image: pod.image,
    hostname: pod.podName,
    env,
    ...(entry !== undefined && { entrypoint: pod.command, command: [] }),
    healthconfig: healthcheck,
    labels,
    stop_timeout: 0,
    init: true,
    no_new_privileges: true,
    cap_drop: confinement.CapDrop,
    cap_add: capabilities,
    restart_policy: 'no',
    ipcns: { nsmode: 'private' },
    netns: { nsmode: 'bridge' },
    Networks: { [network]: { aliases } },
    resource_limits: {
      cpu: { quota: Math.round(cpu * cpuPeriodUs), period: cpuPeriodUs },
      memory: { limit: memory, swap: memory },
      pids: { limit: processesAtMost },
    },
    shm_size: sharedMemory,
    log_configuration: { driver: 'k8s-file', size: logBytes },
    volumes: mounts.map(({ path, source }) => ({ Name: source, Dest: path })),
    devices: devices.map((path) => ({ path })),
  };
}

/** With the names that `nvidia-ctk cdi generate --device-name-strategy uuid` gives. */
export function cdiDeviceByUuid({ gpuUuid, instanceId, instanceUuid }: PodSlice): string {
  if (instanceId !== null && instanceUuid === null)
    throw new ClusterError('slice_missing', 'The UUID of the MIG instance is not known.');
  return `nvidia.com/gpu=${instanceUuid ?? gpuUuid}`;
}
