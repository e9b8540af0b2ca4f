import { ClusterDriver, type Capabilities, type ClusterCheck } from '../cluster-driver.js';
import { ClusterError } from '../cluster-error.js';
import type { Door, ObjectRef, PodRun, VmRun, Volume, VolumeRef } from '../objects.js';
import type { DoorSight, FoundObject, Hint, LogBatch, RunSight, VolumeSight } from '../observations.js';
import type { PodConnection, Shell, ShellRequest } from '../shell.js';
import type { SimulatedOperation } from './simulated-faults.js';
import { SimulatedShell } from './shell/simulated-shell.js';
import { SimulatedLogs } from './simulated-logs.js';
import { SimulatedDoors } from './simulated-doors.js';
import { SimulatedRuns } from './simulated-runs.js';
import { SimulatedVolumes } from './simulated-volumes.js';
import type { SimulatedWorld } from './simulated-world.js';

export const simulatedCapabilities: Capabilities = {
  tls: true,
  udp: true,
  volumes: true,
  volumeQuota: true,
  vms: true,
  shell: 'exec',
  connect: false,
  transportsSharePorts: false,
};

/**
 * A cluster without containers: pods that live, write lines and end as their names say. What it is made of is in the
 * database.
 */
export class SimulatedCluster extends ClusterDriver {
  readonly capabilities = simulatedCapabilities;
  readonly runs: SimulatedRuns;
  private readonly logs: SimulatedLogs;
  private readonly doors: SimulatedDoors;
  private readonly volumes: SimulatedVolumes;
  readonly vms: SimulatedRuns;
  readonly #shells = new Set<SimulatedShell>();

  constructor(
    private readonly world: SimulatedWorld,
    private readonly id: string,
  ) {
    super();
    const { store, pullMs, secrets } = world.options;
    this.volumes = new SimulatedVolumes(store, id);
    const changed = () => world.changed();
    this.runs = new SimulatedRuns(store, id, pullMs, this.volumes, changed);
    this.logs = new SimulatedLogs(store, id, this.runs);
    this.vms = new SimulatedRuns(store, id, pullMs, this.volumes, changed, 'vm');
    this.doors = new SimulatedDoors(store, id, secrets, () => world.ring());
  }

  async identify(signal: AbortSignal): Promise<string> {
    await this.meet('check', signal);
    return `simulated:${this.id}`;
  }

  async check(signal: AbortSignal): Promise<readonly ClusterCheck[]> {
    try {
      await this.meet('check', signal);
      return [{ name: 'reachable', ok: true, detail: 'The cluster is simulated.', howToFix: null, isVital: true }];
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      const howToFix = 'Take back the fault that was injected.';
      return [{ name: 'reachable', ok: false, detail: error.message, howToFix, isVital: true }];
    }
  }

  async startPod(pod: PodRun, isWanted: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    await this.meet('start', signal);
    await this.runs.start(pod, isWanted);
  }

  async stopPod(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void> {
    await this.meet('stop', signal);
    await this.runs.stop(ref, graceMs);
  }

  async observePods(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]> {
    await this.meet('observe', signal);
    return this.runs.observe(refs);
  }

  async openDoor(door: Door, signal: AbortSignal): Promise<void> {
    await this.meet('door', signal);
    await this.doors.open(door);
  }

  async observeDoors(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly DoorSight[]> {
    await this.meet('observe', signal);
    return this.doors.observe(refs);
  }

  async makeVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    await this.meet('volume', signal);
    await this.volumes.make(volume);
  }

  async observeVolumes(refs: readonly VolumeRef[], signal: AbortSignal): Promise<readonly VolumeSight[]> {
    await this.meet('observe', signal);
    return this.volumes.observe(refs);
  }

  async startVm(
    { ref, owner, name, image, volumes, sshKeys }: VmRun,
    isWanted: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.meet('start', signal);
    await this.vms.start({ ref, owner, podName: name, image, command: [], slices: [], volumes }, isWanted);
    await this.vms.setKeys(ref, sshKeys);
  }

  async stopVm(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void> {
    await this.meet('stop', signal);
    await this.vms.stop(ref, graceMs);
  }

  async observeVms(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]> {
    await this.meet('observe', signal);
    return this.vms.observe(refs);
  }

  async remove(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    await this.meet('stop', signal);
    if (ref.kind === 'pod') await this.runs.remove(ref);
    if (ref.kind === 'door') await this.doors.remove(ref);
    if (ref.kind === 'volume') await this.volumes.remove(ref);
    if (ref.kind === 'vm') await this.vms.remove(ref);
  }

  async *list(signal: AbortSignal): AsyncGenerator<FoundObject> {
    await this.meet('list', signal);
    yield* this.runs.list();
    yield* this.vms.list();
    yield* this.doors.list();
    yield* this.volumes.list();
  }

  async *watch(signal: AbortSignal): AsyncGenerator<Hint> {
    await this.world.ready();
    yield* this.world.changes(this.id, signal);
  }

  async *readLogs(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    await this.world.ready();
    yield* this.logs.read(ref, after, signal);
  }

  async openShell(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell> {
    await this.meet('shell', signal);
    const shell = new SimulatedShell(await this.runs.requireRunning(ref), request);
    this.#shells.add(shell);
    void shell.exit.then(() => this.#shells.delete(shell));
    void this.#endWithPod(shell, ref);
    return shell;
  }

  connect(): Promise<PodConnection> {
    return unsupported('connections to pods');
  }

  async close(): Promise<void> {
    await Promise.all([...this.#shells].map((shell) => shell.close()));
  }

  async #endWithPod(shell: SimulatedShell, ref: ObjectRef): Promise<void> {
    for await (const { kind, id } of this.world.changes(this.id, shell.over)) {
      if (kind !== 'pod' || id !== ref.id) continue;
      // The database is away: the next hint, or whoever serves the session, ends it.
      const [sight] = await this.runs.observe([ref]).catch(() => []);
      if (sight && sight.phase !== 'running' && sight.phase !== 'stopping') shell.kill();
    }
  }

  private async meet(operation: SimulatedOperation, signal: AbortSignal): Promise<void> {
    await this.world.ready();
    await this.world.faults.meet(this.id, operation, signal);
    if (signal.aborted) throw new ClusterError('timeout', 'The request was cancelled before the cluster responded.');
  }
}

function unsupported(what: string): Promise<never> {
  return Promise.reject(new ClusterError('not_supported', `This cluster is simulated and has no ${what}.`));
}
