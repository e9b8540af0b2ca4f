import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { timeoutFactor } from '@atoll/testing';
import type { Capabilities, ClusterDriver } from '../cluster-driver.js';
import { ClusterError } from '../cluster-error.js';
import type { Door, ObjectRef, Owner, PodRun, RunRef, VmRun, Volume, VolumeRef } from '../objects.js';
import type { DoorSight, LogLine, RunSight } from '../observations.js';

/** What a pod runs. */
export type Program = Pick<PodRun, 'image' | 'command'>;

/** Programs that every cluster has in some form; null: the contract is not asked for what needs it. */
export interface Programs {
  /** Ends at once at TERM. */
  readonly idle: Program;
  /** Ignores TERM, from its first line on. */
  readonly stubborn: Program;
  readonly exits: (code: number) => Program;
  /**
   * Writes `line 0` to `line <count - 1>`, even ones to stdout and odd ones to stderr, as fast as it can or with so
   * long a pause after each, and ends.
   */
  readonly prints: (count: number, pauseSeconds?: number) => Program;
  /**
   * On TCP and UDP port 8080: says its pod's host name and a line break to each connection or packet, then everything
   * that it receives.
   */
  readonly serves: Program;
  /** Ends with 0 where a TCP connection to this address opens, with 1 where it does not. */
  readonly dials: ((host: string, port: number) => Program) | null;
  /** Writes so many bytes into a file at this path, and stays. */
  readonly fills: ((path: string, bytes: number) => Program) | null;
  readonly missingImage: Program;
}

/** A cluster that a suite may break, and that it shares with nobody. */
export interface ClusterUnderTest {
  readonly programs: Programs;
  /** Where doors are reached. */
  readonly publicHost: string;
  /** A driver as a process that starts has it. */
  open(installationId: string): ClusterDriver;
  /** Ends what answers to drivers as a crash does, and brings it back. Pods continue. */
  crash(): Promise<void>;
  /** What an operator does without Atoll. */
  stopByHand(installationId: string, ref: ObjectRef): Promise<void>;
  removeByHand(installationId: string, ref: ObjectRef): Promise<void>;
  stop(): Promise<void>;
}

/**
 * What no cluster of a kind has, beside what its capabilities say. `scripts`: bash, which the laws of shells run.
 * `printed lines`: programs that write what they are asked to. `broken watches`: something whose crash ends them.
 * `doors by hand`: doors that an operator can stop without Atoll. `cut requests`: a crash of what answers while it
 * starts or removes something, after which it finds its way by itself. `followed bursts`: whole logs for who reads them
 * while a program writes as fast as it can. `lines of a crash`: lines that were written while what answers was killed.
 * `restores`: objects that stay when the database goes back to a backup.
 */
export type Lack =
  | 'scripts'
  | 'printed lines'
  | 'broken watches'
  | 'doors by hand'
  | 'cut requests'
  | 'followed bursts'
  | 'lines of a crash'
  | 'restores';

/** Declared beforehand, so that specs are named by it. */
export interface ContractOptions {
  readonly capabilities: Capabilities;
  readonly lacks?: readonly Lack[];
  start(): Promise<ClusterUnderTest>;
}

const patienceMs = 90_000 * timeoutFactor;

/** One installation on a cluster, with drivers that come and go. */
export class Installation {
  readonly id = randomUUID();
  #driver: ClusterDriver;
  #runs = 0;

  constructor(readonly cluster: ClusterUnderTest) {
    this.#driver = cluster.open(this.id);
  }

  get driver(): ClusterDriver {
    return this.#driver;
  }

  get programs(): Programs {
    return this.cluster.programs;
  }

  /** The process ends with whatever is under way, and another one starts. */
  async restart(): Promise<ClusterDriver> {
    await this.#driver.close();
    this.#driver = this.cluster.open(this.id);
    return this.#driver;
  }

  ref(kind: RunRef['kind'], more: Partial<RunRef> = {}): RunRef {
    this.#runs += 1;
    return { kind, id: randomUUID(), run: this.#runs, ...more };
  }

  volumeRef(more: Partial<VolumeRef> = {}): VolumeRef {
    return { kind: 'volume', id: randomUUID(), run: 0, teamId: randomUUID(), ...more };
  }

  pod(program: Program, more: Partial<PodRun> = {}): PodRun {
    const ref = more.ref ?? this.ref('pod');
    const rest = { env: new Map(), cpu: null, memoryGb: 0.2, slices: [], volumes: [] };
    const names = { ref, requestedAt: new Date(), owner: owner(), podName: `p-${ref.id.slice(0, 8)}-${ref.run}` };
    return { ...names, ...rest, ...program, ...more };
  }

  vm({ image }: Program, more: Partial<VmRun> = {}): VmRun {
    const ref = more.ref ?? this.ref('vm');
    const rest = { vcpus: 1, memoryGb: 1, volumes: [], sshKeys: [] };
    return { ref, owner: owner(), name: `vm-${ref.id.slice(0, 8)}-${ref.run}`, image, ...rest, ...more };
  }

  door(pod: PodRun, externalPort: number, more: Partial<Door> = {}): Door {
    const { owner: same, ref } = pod;
    return {
      ref: this.ref('door'),
      owner: same,
      podId: ref.id,
      transport: 'tcp',
      port: 8080,
      externalPort,
      tls: null,
      ...more,
    };
  }

  volume(more: Partial<Volume> = {}): Volume {
    return { ref: this.volumeRef(), workspaceId: randomUUID(), sizeGb: 1, ...more };
  }

  async observePod({ ref }: { ref: ObjectRef }): Promise<RunSight> {
    const [sight] = await this.#driver.observePods([ref], soon());
    return sight!;
  }

  async observeDoor({ ref }: { ref: ObjectRef }): Promise<DoorSight> {
    const [sight] = await this.#driver.observeDoors([ref], soon());
    return sight!;
  }

  /** Requests the run, again and again as a caller does, until it has come so far. */
  async start(pod: PodRun, phase: RunSight['phase'] = 'running'): Promise<RunSight> {
    return eventually(async () => {
      await this.#driver.startPod(pod, wanted, soon());
      const sight = await this.observePod(pod);
      return sight.phase === phase || sight.phase === 'ended' ? sight : undefined;
    });
  }

  async startRunning(program: Program, more: Partial<PodRun> = {}): Promise<PodRun> {
    const pod = this.pod(program, more);
    await this.start(pod);
    return pod;
  }

  /** The sight once its phase is this one. */
  async seen<P extends RunSight['phase']>(pod: { ref: ObjectRef }, phase: P): Promise<Extract<RunSight, { phase: P }>> {
    return eventually(async () => {
      const sight = await this.observePod(pod);
      return sight.phase === phase ? (sight as Extract<RunSight, { phase: P }>) : undefined;
    });
  }

  async open(door: Door): Promise<Door> {
    return eventually(async () => {
      await this.#driver.openDoor(door, soon());
      return (await this.observeDoor(door)).phase === 'open' ? door : undefined;
    });
  }

  async remove(...objects: readonly { ref: ObjectRef }[]): Promise<void> {
    for (const { ref } of objects) {
      await eventually(async () => {
        await this.#driver.remove(ref, soon());
        return (await this.listed()).every((found) => !isDeepStrictEqual(found, ref)) || undefined;
      });
    }
  }

  async listed(): Promise<readonly ObjectRef[]> {
    const found: ObjectRef[] = [];
    for await (const { ref } of this.#driver.list(soon())) found.push(ref);
    return found;
  }

  /** A run that has written its first line: its program is past its own beginning. */
  async startSpeaking(program: Program): Promise<PodRun> {
    const pod = await this.startRunning(program);
    for await (const { lines } of this.#driver.readLogs(pod.ref, null, soon())) if (lines.length > 0) return pod;
    throw new Error('The run ended without a line.');
  }

  /** All that a run writes after a cursor, until it is complete. */
  async readAll(pod: { ref: ObjectRef }, after: string | null = null): Promise<readonly LogLine[]> {
    const lines: LogLine[] = [];
    for await (const batch of this.#driver.readLogs(pod.ref, after, soon())) lines.push(...batch.lines);
    return lines;
  }

  /** Ends everything and lets go. */
  async leave(): Promise<void> {
    for (const ref of await this.listed()) if (ref.kind !== 'volume') await this.#driver.remove(ref, soon());
    for (const ref of await this.listed()) await this.#driver.remove(ref, soon());
    await this.#driver.close();
  }
}

export const owner = (): Owner => ({ teamId: randomUUID(), workspaceId: randomUUID() });

/** Of a volume, for the pods that mount it. */
export const ownerOf = ({ ref: { teamId }, workspaceId }: Volume): Owner => ({ teamId, workspaceId });

/** For `startPod`: the run is wanted for as long as the spec asks for it. */
export const wanted = (): Promise<boolean> => Promise.resolve(true);

export const soon = (ms = patienceMs): AbortSignal => AbortSignal.timeout(ms);

/** Tries until there is a result. An error that may pass is one more reason to try again. */
export async function eventually<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  const untilMs = Date.now() + patienceMs;
  for (;;) {
    try {
      const result = await attempt();
      if (result !== undefined) return result;
      if (Date.now() > untilMs) throw new Error('The condition was not met in time.');
    } catch (error) {
      if (!(error instanceof ClusterError) || error.isPermanent || Date.now() > untilMs) throw error;
    }
    await delay(20);
  }
}

/** The code of the `ClusterError` that it fails with. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => new Error('It did not fail.'),
    (reason: unknown) => reason,
  );
  if (error instanceof ClusterError) return error.code;
  throw error;
}
