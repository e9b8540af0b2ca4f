import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { ClusterDriver, type Capabilities, type ClusterCheck } from '../cluster-driver.js';
import { ClusterError } from '../cluster-error.js';
import type { Door, ObjectRef, PodRun, PodSlice, Volume, VolumeRef } from '../objects.js';
import type { DoorSight, FoundObject, Hint, LogBatch, RunSight, VolumeSight } from '../observations.js';
import type { PodConnection, Shell, ShellRequest } from '../shell.js';
import { Checks } from './checks.js';
import { cdiDeviceByUuid, type PodDefaults } from './container-body.js';
import { Containers } from './containers.js';
import { Doors } from './doors.js';
import { Engine } from './engine.js';
import type { EngineAddress } from './engine-connection.js';
import type { InfoAnswer } from './engine-answer.js';
import { clusterErrorOf } from './engine-errors.js';
import { Hints } from './hints.js';
import { Images } from './images.js';
import { IsolationProbe } from './isolation-probe.js';
import { Keepers } from './keepers.js';
import { Links } from './links.js';
import { Logs, usualLogWaits, type LogWaits } from './logs.js';
import { Names } from './names.js';
import { Networks } from './networks.js';
import { isUnstartedStatus, Pods } from './pods.js';
import { Sessions } from './sessions.js';
import { Shells } from './shells.js';
import { Volumes } from './volumes.js';

export interface DockerDriverOptions {
  /** Lower-case letters, digits and `-`, at most 50: a label of everything that is created. */
  readonly installationId: string;
  readonly address: EngineAddress;
  /**
   * The name or address at which the engine's host is reached from outside. Doors of a loopback host are bound to
   * loopback.
   */
  readonly publicHost: string;
  /** For doors, and for connections into pods: deploy/door says what it needs. */
  readonly doorImage: string;
  /** 2 cores (or as many as the host has) and 4 GB where it is left out. */
  readonly defaults?: PodDefaults;
  /** `nvidia.com/gpu=<UUID>` of the MIG instance or GPU where it is left out. */
  readonly cdiDeviceOf?: (slice: PodSlice) => string;
  /** How long a registry may send nothing before a pull fails; 5 minutes where it is left out. */
  readonly pullStallMs?: number;
  /** How long a pull keeps others waiting that wait for a turn; 5 minutes where it is left out. */
  readonly pullTurnMs?: number;
  /** How often it is asked whether the runs that wait for a pull are still wanted; 20 s where it is left out. */
  readonly pullReviewMs?: number;
  /** How old the used bytes of volumes may be; a minute where it is left out. The engine reads every file for them. */
  readonly volumeUsageAgeMs?: number;
  /** On Podman, how often `list` looks at most whether networks are isolated; a minute where it is left out. */
  readonly isolationProbeMs?: number;
  /** On Podman, how many networks without a pod stay while pods of others run; 64 where it is left out. */
  readonly idleNetworks?: number;
  /** 5 s to find the place in a log, and a minute of silence, where it is left out. */
  readonly logWaits?: Partial<LogWaits>;
}

export const dockerCapabilities: Capabilities = {
  tls: true,
  udp: true,
  volumes: true,
  volumeQuota: false,
  vms: false,
  shell: 'exec',
  connect: true,
  transportsSharePorts: true,
};

/** Pods on one container engine, through the Docker Engine API: Docker 20.10 or newer, Podman 4 or newer. */
export class DockerDriver extends ClusterDriver {
  readonly capabilities = dockerCapabilities;

  readonly #engine: Engine;
  readonly #names: Names;
  readonly #containers: Containers;
  readonly #networks: Networks;
  readonly #images: Images;
  readonly #hints: Hints;
  readonly #pods: Pods;
  readonly #doors: Doors;
  readonly #volumes: Volumes;
  readonly #logs: Logs;
  readonly #shells: Shells;
  readonly #links: Links;
  readonly #probe: IsolationProbe;
  readonly #checks: Checks;
  /** Cached responses of one piece of work: a check is followed by a look at the engine's identity. */
  readonly #infos = new WeakMap<AbortSignal, Promise<InfoAnswer>>();

  constructor(options: DockerDriverOptions) {
    super();
    const { doorImage, volumeUsageAgeMs = 60_000 } = options;
    const { pullTurnMs: turnMs = 300_000, pullStallMs: stallMs = 300_000, pullReviewMs: reviewMs = 20_000 } = options;
    const { isolationProbeMs = 60_000, idleNetworks = 64, logWaits } = options;
    const { defaults = { cpu: 2, memoryGb: 4 }, cdiDeviceOf = cdiDeviceByUuid } = options;
    const engine = (this.#engine = new Engine(options.address));
    const names = (this.#names = new Names(options.installationId));
    const containers = (this.#containers = new Containers(engine, names));
    const keepers = new Keepers({ engine, containers, names });
    const networks = (this.#networks = new Networks({ engine, names, containers, keepers }, idleNetworks));
    this.#hints = new Hints(engine, names);
    const images = (this.#images = new Images(engine, names, { turnMs, stallMs, reviewMs }, (ref) =>
      this.#hints.give(ref),
    ));
    const parts = { engine, names, containers, networks, images };
    this.#probe = new IsolationProbe({ engine, containers, names, images, keepers }, doorImage, isolationProbeMs);
    const volumes = (this.#volumes = new Volumes(engine, names, volumeUsageAgeMs));
    this.#pods = new Pods({ ...parts, volumes }, { defaults, cdiDeviceOf });
    const probeOf = (installationId: string, image: string): IsolationProbe => {
      const owner = new Names(installationId);
      const owned = { engine, names: owner, containers: new Containers(engine, owner) };
      return new IsolationProbe({ ...owned, images, keepers: new Keepers(owned) }, image, isolationProbeMs);
    };
    this.#doors = new Doors(parts, { image: doorImage, bindAddress: bindAddressOf(options.publicHost) });
    this.#logs = new Logs(parts, { ...usualLogWaits, ...logWaits });
    const sessions = new Sessions();
    this.#shells = new Shells({ ...parts, sessions });
    this.#links = new Links({ ...parts, sessions }, doorImage);
    this.#checks = new Checks({ engine, images, probeOf }, { doorImage, isLocal: 'socketPath' in options.address });
  }

  /**
   * Docker has an id for each engine. Podman makes up another one for each answer, so its host and its storage stand
   * for it.
   */
  async identify(signal: AbortSignal): Promise<string> {
    return guarded(signal, async () => {
      const { ID, Name, DockerRootDir } = await (this.#infos.get(signal) ?? this.#info(signal));
      if ((await this.#engine.kind(signal)) === 'docker') return ID;
      return createHash('sha256').update(`${Name}\n${DockerRootDir}`).digest('hex');
    });
  }

  check(signal: AbortSignal): Promise<readonly ClusterCheck[]> {
    return this.#checks.run(() => this.#info(signal), signal);
  }

  #info(signal: AbortSignal): Promise<InfoAnswer> {
    const info = this.#engine.json<InfoAnswer>({ method: 'GET', path: '/info', signal });
    this.#infos.set(signal, info);
    return info;
  }

  startPod(pod: PodRun, isWanted: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    return guarded(signal, () => this.#pods.start(pod, isWanted, signal));
  }

  stopPod(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void> {
    return guarded(signal, () => this.#pods.stop(ref, graceMs, signal));
  }

  observePods(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]> {
    return guarded(signal, () => this.#pods.observe(refs, signal));
  }

  openDoor(door: Door, signal: AbortSignal): Promise<void> {
    return guarded(signal, () => this.#doors.open(door, signal));
  }

  observeDoors(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly DoorSight[]> {
    return guarded(signal, () => this.#doors.observe(refs, signal));
  }

  makeVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    return guarded(signal, () => this.#volumes.make(volume, signal));
  }

  observeVolumes(refs: readonly VolumeRef[], signal: AbortSignal): Promise<readonly VolumeSight[]> {
    return guarded(signal, () => this.#volumes.observe(refs, signal));
  }

  startVm(): Promise<void> {
    return Promise.reject(noVms());
  }

  stopVm(): Promise<void> {
    return Promise.reject(noVms());
  }

  observeVms(refs: readonly ObjectRef[]): Promise<readonly RunSight[]> {
    return Promise.resolve(refs.map(() => ({ phase: 'absent' })));
  }

  async remove(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    await guarded(signal, async () => {
      if (ref.kind === 'pod') await this.#pods.remove(ref, signal);
      else if (ref.kind === 'door') await this.#doors.remove(ref, signal);
      else if (ref.kind === 'volume') await this.#volumes.remove(ref, signal);
    });
  }

  async *list(signal: AbortSignal): AsyncGenerator<FoundObject> {
    yield* await guarded(signal, () => this.#found(signal));
    await guarded(signal, async () => {
      await this.#links.removeAbandoned(signal);
      await this.#pods.tend(signal);
      await this.#networks.tend(signal);
      if ((await this.#engine.kind(signal)) === 'podman') await this.#probe.runIfDue(signal);
    });
  }

  async #found(signal: AbortSignal): Promise<readonly FoundObject[]> {
    const containers = await this.#containers.list({}, signal);
    const found = containers.flatMap(({ Labels, Created, State }): FoundObject[] => {
      const ref = this.#names.refOf(Labels);
      const isUnstarted = ref?.kind === 'pod' && isUnstartedStatus(State);
      return ref ? [{ ref, createdAt: new Date(Created * 1000), ...(isUnstarted && { isUnstarted }) }] : [];
    });
    return [...found, ...(await this.#volumes.list(signal))];
  }

  watch(signal: AbortSignal): AsyncGenerator<Hint> {
    return guardedItems(signal, this.#hints.watch(signal));
  }

  readLogs(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    return guardedItems(signal, this.#logs.read(ref, after, signal));
  }

  openShell(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell> {
    return guarded(signal, () => this.#shells.open(ref, request, signal));
  }

  connect(ref: ObjectRef, port: number, signal: AbortSignal): Promise<PodConnection> {
    return guarded(signal, () => this.#links.connect(ref, port, signal));
  }

  close(): Promise<void> {
    this.#pods.close();
    this.#doors.close();
    this.#images.close();
    this.#shells.close();
    this.#links.close();
    this.#engine.close();
    return Promise.resolve();
  }
}

const noVms = () => new ClusterError('not_supported', 'A container engine runs no virtual machines.');

function bindAddressOf(publicHost: string): string {
  if (publicHost === 'localhost') return '127.0.0.1';
  const isLoopback = isIP(publicHost) !== 0 && (publicHost.startsWith('127.') || publicHost === '::1');
  return isLoopback ? publicHost : '';
}

/** Whatever fails below comes out as a `ClusterError`. */
async function guarded<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw errorOf(error, signal);
  }
}

/** The same of a sequence, which ends without an error when the signal is aborted. */
async function* guardedItems<T>(signal: AbortSignal, items: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    if (!signal.aborted) throw errorOf(error, signal);
  }
}

function errorOf(error: unknown, signal: AbortSignal): ClusterError {
  if (error instanceof ClusterError || !signal.aborted) return clusterErrorOf(error);
  return new ClusterError('timeout', 'The request was cancelled before the container engine responded.', {
    cause: error,
  });
}
