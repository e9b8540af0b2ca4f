import { createPrivateKey, X509Certificate } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { FairSemaphore, untilAborted } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { Certificate, Door, ObjectRef } from '../objects.js';
import type { DoorSight } from '../observations.js';
import { confinement, logLimit } from './container-body.js';
import type { Containers } from './containers.js';
import {
  archive,
  certificateFile,
  doorArchive,
  doorCommand,
  doorFolder,
  doorPort,
  doorUser,
  fingerprintOf,
  loadedFile,
  loadedMark,
  pidFile,
} from './door-files.js';
import type { Engine, EngineKind } from './engine.js';
import type { ContainerAnswer } from './engine-answer.js';
import { isMissing } from './engine-errors.js';
import type { Images } from './images.js';
import type { Names } from './names.js';
import type { Networks } from './networks.js';

export interface DoorOptions {
  /** Debian or Alpine with nginx, its stream module and `sh`. */
  readonly image: string;
  /** The host's address that external ports are bound to: loopback, or all ('') . */
  readonly bindAddress: string;
}

const memoryBytes = 128 * 1024 * 1024;
const processesAtMost = 32;
const logBytes = 1024 * 1024;

/**
 * A container of its own for each exposed service, in the network of the pod's workspace: nginx publishes the external
 * port and finds the pod by name. It works while no process of Atoll runs, and comes back by the engine's restart
 * policy.
 */
export class Doors {
  /** By container: what is done to one, one thing after the other. */
  readonly #turns = new FairSemaphore({ permitsPerKey: 1 });
  readonly #closing = new AbortController();

  constructor(
    private readonly parts: {
      engine: Engine;
      names: Names;
      containers: Containers;
      networks: Networks;
      images: Images;
    },
    private readonly options: DoorOptions,
  ) {}

  async open(door: Door, signal: AbortSignal): Promise<void> {
    const { containers, images, names, networks } = this.parts;
    const name = names.of(door.ref);
    if (door.tls) requirePair(door.tls);
    const open = async (): Promise<void> => {
      const found = await containers.find(name, signal);
      const existing = found && (await this.#unlessAnother(door, found, signal));
      if (existing?.State.Status === 'running') return this.#renew(existing.Id, door.tls, signal);
      if (!existing && !(await images.prepare(this.options.image, { ref: door.ref, teamId: '' }, signal))) return;
      await networks.with(door.owner, this.options.image, signal, (network) =>
        this.#start(door, network, existing, signal),
      );
    };
    // Its creation goes on when the caller has given up, and a removal waits for it.
    await untilAborted(signal, this.#turns.run(open, { key: name, signal }));
  }

  /** Ends what is waited for although its caller has given up. */
  close(): void {
    this.#closing.abort();
  }

  /**
   * A database that was restored gives the number of an exposed service again, and what had it may still be there. It
   * holds no data, so it goes; its network goes with the next `tend`.
   */
  async #unlessAnother(door: Door, found: ContainerAnswer, signal: AbortSignal): Promise<ContainerAnswer | null> {
    const { containers, names } = this.parts;
    if (names.isDoor(found.Config.Labels, door)) return found;
    await containers.remove(found.Id, signal);
    return null;
  }

  /** Where a creation was cut short its files may be missing, so they are always written before a start. */
  async #start(door: Door, network: string, existing: ContainerAnswer | null, signal: AbortSignal): Promise<void> {
    const { containers, engine, names, networks } = this.parts;
    const files = await doorArchive(door, await networks.resolver(network, signal));
    const body = this.#body(door, network, await engine.kind(signal));
    const id = existing?.Id ?? (await containers.create(names.of(door.ref), body, this.#closing.signal));
    signal.throwIfAborted();
    await containers.upload(id, doorFolder, files, signal);
    await containers.start(id, signal);
  }

  #body(door: Door, network: string, kind: EngineKind): object {
    const inside = `${doorPort}/${door.transport}`;
    const outside = { HostIp: this.options.bindAddress, HostPort: String(door.externalPort) };
    return {
      Image: this.options.image,
      User: `${doorUser}:${doorUser}`,
      Entrypoint: doorCommand,
      Cmd: [],
      Labels: this.parts.names.doorLabels(door),
      StopTimeout: 0,
      ExposedPorts: { [inside]: {} },
      HostConfig: {
        ...confinement,
        RestartPolicy: { Name: 'unless-stopped' },
        NetworkMode: network,
        PortBindings: { [inside]: [outside] },
        ReadonlyRootfs: true,
        Tmpfs: { '/tmp': 'rw,noexec,nosuid,size=1m' },
        Mounts: [{ Type: 'volume', Target: doorFolder }],
        Memory: memoryBytes,
        MemorySwap: memoryBytes,
        PidsLimit: processesAtMost,
        LogConfig: { Type: 'json-file', Config: logLimit(logBytes, kind) },
      },
    };
  }

  /** Loads another certificate. The mark is written last, so that a renewal which was cut short is done again. */
  async #renew(id: string, tls: Certificate | null, signal: AbortSignal): Promise<void> {
    if (!tls || (await this.#hasLoaded(id, tls, signal))) return;
    const { containers, engine } = this.parts;
    await containers.upload(id, doorFolder, await archive([certificateFile(tls)]), signal);
    await engine.json({ method: 'POST', path: `/containers/${id}/kill`, query: { signal: 'HUP' }, signal });
    await containers.upload(id, doorFolder, await archive([loadedMark(tls)]), signal);
  }

  async #hasLoaded(id: string, tls: Certificate, signal: AbortSignal): Promise<boolean> {
    const mark = await this.parts.engine.stream({
      method: 'GET',
      path: `/containers/${id}/archive`,
      query: { path: loadedFile },
      signal,
    });
    return (await buffer(mark)).includes(fingerprintOf(tls.certificate));
  }

  async observe(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly DoorSight[]> {
    return Promise.all(refs.map((ref) => this.#observe(ref, signal)));
  }

  async #observe(ref: ObjectRef, signal: AbortSignal): Promise<DoorSight> {
    const { containers, images, names } = this.parts;
    const found = await containers.find(names.of(ref), signal);
    if (!found) {
      const pull = images.sightOf(ref);
      return pull ? { phase: 'opening', trouble: pull.trouble } : { phase: 'absent' };
    }
    const isOpen = found.State.Status === 'running' && (await this.#listens(found, signal));
    return isOpen ? { phase: 'open', host: null } : { phase: 'opening', trouble: null };
  }

  /** The engine says that the process runs; nginx says by its file that it listens. */
  async #listens({ Id }: ContainerAnswer, signal: AbortSignal): Promise<boolean> {
    try {
      await this.parts.engine.header(
        { method: 'HEAD', path: `/containers/${Id}/archive`, query: { path: pidFile }, signal },
        'date',
      );
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async remove(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const { containers, images, names, networks } = this.parts;
    const name = names.of(ref);
    const remove = async (): Promise<void> => {
      images.forget(ref);
      const found = await containers.find(name, signal);
      await containers.remove(found?.Id ?? name, signal);
      const workspaceId = found && names.workspaceOf(found.Config.Labels);
      if (workspaceId) await networks.removeIfUnused(workspaceId, signal);
    };
    await this.#turns.run(remove, { key: name, signal });
  }
}

function requirePair({ certificate, key }: Certificate): void {
  try {
    if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return;
  } catch {
    // Its message could quote the key.
  }
  throw new ClusterError('invalid', 'The certificate and the key are not a pair in PEM.');
}
