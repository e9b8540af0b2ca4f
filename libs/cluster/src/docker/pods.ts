import { FairSemaphore, untilAborted } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef, PodRun, VolumeMount } from '../objects.js';
import type { Exit, RunSight, Trouble } from '../observations.js';
import { dockerBody, libpodBody, type PodContainer, type PodDefaults } from './container-body.js';
import type { Containers } from './containers.js';
import type { Engine, EngineKind } from './engine.js';
import type { ContainerAnswer, InfoAnswer } from './engine-answer.js';
import { clusterErrorOf, EngineRefusal } from './engine-errors.js';
import type { Images } from './images.js';
import type { Names } from './names.js';
import type { Networks } from './networks.js';
import type { Volumes } from './volumes.js';

/** Up to so many are inspected one by one; more are listed first. */
const fewRefs = 4;
/** What an engine may take to end a container after its grace. */
const killMs = 30_000;
const killedExitCode = 137;

interface Creation {
  readonly pod: PodRun;
  readonly network: string;
  readonly mounts: PodContainer['mounts'];
  readonly isWanted: () => Promise<boolean>;
}

interface RequestedStop {
  /** Whether the engine is at it. */
  readonly isUnderWay: boolean;
  /** By `performance.now()`: when the engine said first that it is done. */
  readonly doneAtMs: number | null;
}

/** Runs of pods as containers. */
export class Pods {
  /** By container: what is done to one, one thing after the other. */
  readonly #turns = new FairSemaphore({ permitsPerKey: 1 });
  /** By container: those whose end this process has requested. */
  readonly #stops = new Map<string, RequestedStop>();
  readonly #closing = new AbortController();
  #cores: number | undefined;

  constructor(
    private readonly parts: {
      engine: Engine;
      names: Names;
      containers: Containers;
      networks: Networks;
      images: Images;
      volumes: Volumes;
    },
    private readonly options: Pick<PodContainer, 'defaults' | 'cdiDeviceOf'>,
  ) {}

  async start(pod: PodRun, isWanted: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const { containers, images, names, networks } = this.parts;
    const name = names.of(pod.ref);
    const start = async (): Promise<void> => {
      const found = await containers.find(name, signal);
      const existing = found && (await this.#unlessAnother(pod, found, signal));
      if (existing && !isUnstarted(existing)) return;
      const wanting = { ref: pod.ref, teamId: pod.owner.teamId, requestedBy: pod.requestedBy, isWanted };
      if (!existing && !(await images.prepare(pod.image, wanting, signal))) return;
      const mounts = await this.#mountsOf(pod, signal);
      await networks.with(pod.owner, pod.image, signal, (network) =>
        this.#createAndStart({ pod, network, mounts, isWanted }, signal),
      );
    };
    // Its creation goes on when the caller has given up.
    await untilAborted(signal, this.#turns.run(start, { key: name, signal }));
  }

  /**
   * A database that was restored gives the number of a run again, and what had it may still be there: with other
   * slices, which may be of another team now.
   */
  async #unlessAnother(pod: PodRun, found: ContainerAnswer, signal: AbortSignal): Promise<ContainerAnswer | null> {
    if (this.parts.names.isRun(found.Config.Labels, pod)) return found;
    await this.#removeWhole(this.parts.names.of(pod.ref), found, signal);
    return null;
  }

  /**
   * An engine creates a container even if the caller no longer waits for the response. So this waits for the creation
   * even after the caller has given up: otherwise a container of a run that was stopped meanwhile would stay for
   * minutes.
   */
  async #createAndStart({ pod, network, mounts, isWanted }: Creation, signal: AbortSignal): Promise<void> {
    const { containers, names, engine } = this.parts;
    const container = {
      ...this.options,
      defaults: await this.#defaults(signal),
      network,
      mounts,
      kind: await engine.kind(signal),
    };
    const needsDevice = pod.slices.some(({ isSimulated }) => !isSimulated);
    const api = needsDevice && container.kind === 'podman' ? 'libpod' : 'docker';
    const body = (api === 'libpod' ? libpodBody : dockerBody)(pod, names, container);
    const name = names.of(pod.ref);
    const id = await containers.create(name, body, this.#closing.signal, api);
    // Not before: whoever has stopped the run may have looked for the container before it was there. And by its id,
    // since its name may be that of a later one.
    if (!(await isWanted())) return this.#removeUnstarted(name);
    // An engine starts a container again that has ended: another process may have started it meanwhile.
    const now = await containers.find(id, signal);
    if (now && !isUnstarted(now)) return;
    signal.throwIfAborted();
    try {
      await containers.start(id, signal);
    } catch (error) {
      // Its network was removed meanwhile: the container refers to it, and is created anew with the next one.
      if (error instanceof EngineRefusal && /network/i.test(error.text)) await containers.remove(id, signal);
      throw error;
    }
  }

  /** Ends what is waited for although its caller has given up. */
  close(): void {
    this.#closing.abort();
  }

  async #removeUnstarted(name: string): Promise<void> {
    const { signal } = this.#closing;
    const found = await this.parts.containers.find(name, signal);
    if (found && isUnstarted(found)) await this.parts.containers.remove(found.Id, signal);
  }

  /** Docker refuses a limit above the number of the host's cores. */
  async #defaults(signal: AbortSignal): Promise<PodDefaults> {
    const { defaults } = this.options;
    this.#cores ??= (await this.parts.engine.json<InfoAnswer>({ method: 'GET', path: '/info', signal })).NCPU;
    return { ...defaults, cpu: Math.min(defaults.cpu, this.#cores) };
  }

  /** An engine creates a volume that it does not know, without a label and an owner. */
  async #mountsOf({ owner: { teamId }, volumes }: PodRun, signal: AbortSignal): Promise<PodContainer['mounts']> {
    const mountOf = async ({ volumeId, path }: VolumeMount) => {
      const source = await this.parts.volumes.nameOf({ kind: 'volume', id: volumeId, run: 0, teamId }, signal);
      if (source === null) throw new ClusterError('not_found', `The volume ${volumeId} does not exist.`);
      return { source, path };
    };
    return Promise.all(volumes.map(mountOf));
  }

  async stop(ref: ObjectRef, graceMs: number, signal: AbortSignal): Promise<void> {
    const { containers, images, names } = this.parts;
    const name = names.of(ref);
    const stop = async (): Promise<void> => {
      images.forget(ref);
      const found = await containers.find(name, signal);
      if (!found || isEnded(found)) return;
      if (isUnstarted(found)) await containers.remove(found.Id, signal);
      else if (this.#isLeft(name, found, graceMs)) await this.#removeWhole(name, found, signal);
      else if (!this.#stops.get(name)?.isUnderWay) this.#requestStop(name, found.Id, graceMs);
    };
    await this.#turns.run(stop, { key: name, signal });
  }

  /**
   * Podman does not learn of the end of a container whose conmon was killed: the container stays `stopping`, each stop
   * is answered at once, and only its removal ends it. A stop is also answered so within the grace of an earlier one,
   * so this waits for the grace, and as long again as an engine may take: readers come to the end of its log meanwhile.
   */
  #isLeft(name: string, { State }: ContainerAnswer, graceMs: number): boolean {
    const doneAtMs = this.#stops.get(name)?.doneAtMs ?? Infinity;
    return State.Status === 'stopping' && performance.now() > doneAtMs + graceMs + killMs;
  }

  /** The engine answers when the container has ended. It goes on by itself when this process dies. */
  #requestStop(name: string, id: string, graceMs: number): void {
    const doneAtMs = this.#stops.get(name)?.doneAtMs ?? null;
    const over = (at: number | null): unknown =>
      this.#stops.has(name) && this.#stops.set(name, { isUnderWay: false, doneAtMs: doneAtMs ?? at });
    this.#stops.set(name, { isUnderWay: true, doneAtMs });
    const deadlineMs = graceMs + killMs;
    const query = { t: Math.ceil(graceMs / 1000) };
    const { signal } = new AbortController();
    void this.parts.engine.stream({ method: 'POST', path: `/containers/${id}/stop`, query, signal, deadlineMs }).then(
      (body) => (body.resume(), over(performance.now())),
      // Observed as a run that still runs, and requested again.
      () => over(null),
    );
  }

  async observe(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly RunSight[]> {
    const present = refs.length > fewRefs ? await this.#namesPresent(signal) : null;
    const isAbsent = (ref: ObjectRef) => present !== null && !present.has(this.parts.names.of(ref));
    return Promise.all(refs.map(async (ref) => (isAbsent(ref) ? this.#absent(ref) : this.#observe(ref, signal))));
  }

  async #namesPresent(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const listed = await this.parts.containers.list({ kind: 'pod' }, signal);
    return new Set(listed.flatMap(({ Names: own }) => own.map((name) => name.replace(/^\//, ''))));
  }

  async #observe(ref: ObjectRef, signal: AbortSignal): Promise<RunSight> {
    const name = this.parts.names.of(ref);
    const found = await this.parts.containers.find(name, signal);
    if (!found) return this.#absent(ref);
    if (isUnstarted(found)) return { phase: 'preparing', pull: null, trouble: troubleOf(found) };
    if (isEnded(found)) {
      const exit = exitOf(found, await this.parts.engine.kind(signal), this.#stops.has(name));
      return { phase: 'ended', startedAt: dateOf(found.State.StartedAt), exit };
    }
    const isStopping = this.#stops.get(name)?.isUnderWay || /^(stopping|removing)$/.test(found.State.Status);
    if (isStopping) return { phase: 'stopping' };
    return { phase: 'running', startedAt: dateOf(found.State.StartedAt) ?? new Date(found.Created), trouble: null };
  }

  #absent(ref: ObjectRef): RunSight {
    const pull = this.parts.images.sightOf(ref);
    return pull ? { phase: 'preparing', ...pull } : { phase: 'absent' };
  }

  async remove(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const { containers, images, names } = this.parts;
    const name = names.of(ref);
    const remove = async (): Promise<void> => {
      images.forget(ref);
      await this.#removeWhole(name, await containers.find(name, signal), signal);
    };
    await this.#turns.run(remove, { key: name, signal });
  }

  /** Forgets the stops of containers that another process has removed. */
  async tend(signal: AbortSignal): Promise<void> {
    const stoppedBefore = [...this.#stops.keys()];
    if (stoppedBefore.length === 0) return;
    const present = await this.#namesPresent(signal);
    for (const name of stoppedBefore) if (!present.has(name)) this.#stops.delete(name);
  }

  /** `found`: null for what `find` does not see. The workspace's network goes too, if nothing else is in it. */
  async #removeWhole(name: string, found: ContainerAnswer | null, signal: AbortSignal): Promise<void> {
    const { containers, names, networks } = this.parts;
    if (found) {
      // Helpers that share its network namespace go first: Podman removes nothing that others depend on.
      const links = await containers.list({ kind: 'link', pod: found.Id }, signal);
      await Promise.all(links.map(({ Id }) => containers.remove(Id, signal)));
    }
    await containers.remove(found?.Id ?? name, signal);
    const workspaceId = found && names.workspaceOf(found.Config.Labels);
    if (workspaceId) await networks.removeIfUnused(workspaceId, signal);
    this.#stops.delete(name);
  }
}

export const isUnstartedStatus = (status: string): boolean => /^(created|configured|initialized)$/.test(status);
export const isUnstarted = ({ State }: ContainerAnswer): boolean => isUnstartedStatus(State.Status);
export const isEnded = ({ State }: ContainerAnswer): boolean => /^(exited|stopped|dead)$/.test(State.Status);

/** Docker keeps why a start failed; Podman says it only in answer to the start. */
function troubleOf({ State }: ContainerAnswer): Trouble | null {
  if (!State.Error) return null;
  const { code, message } = clusterErrorOf(new EngineRefusal(500, State.Error));
  return { code, message };
}

/**
 * Podman up to 4 always answers `OOMKilled: false` (containers/podman#21523). An end that Podman has not seen has the
 * code -1.
 */
function exitOf({ State, HostConfig, Created }: ContainerAnswer, kind: EngineKind, isRequested: boolean): Exit {
  const { ExitCode: code, OOMKilled, FinishedAt } = State;
  const mayBeMemory = kind === 'podman' && code === killedExitCode && HostConfig.Memory > 0 && !isRequested;
  const outOfMemory = OOMKilled && code !== 0 ? 'yes' : mayBeMemory ? 'probably' : 'no';
  return { code: code < 0 ? null : code, outOfMemory, reason: null, at: dateOf(FinishedAt) ?? new Date(Created) };
}

/** null for the year 1, an engine's "never". */
function dateOf(text: string): Date | null {
  const date = new Date(text);
  return date.getTime() > 0 ? date : null;
}
