import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { FairSemaphore, untilAborted } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { PodConnection } from '../shell.js';
import { confinement } from './container-body.js';
import type { Containers } from './containers.js';
import { doorFolder, doorUser } from './door-files.js';
import type { Engine } from './engine.js';
import type { ContainerAnswer } from './engine-answer.js';
import { createLinkKeys, Link, linkArchive, linkCommand } from './link.js';
import type { Names } from './names.js';
import type { Sessions } from './sessions.js';

const memoryBytes = 128 * 1024 * 1024;
const processesAtMost = 32;
const openingAtOnce = 4;
const idleMs = 300_000;
const openMs = 60_000;
const removeMs = 30_000;
/** A helper that never started was left by a crash. */
const abandonedMs = 600_000;

interface Entry {
  readonly link: Promise<Link>;
  idle: NodeJS.Timeout | null;
}

/**
 * Connections into pods. For each pod that needs some, one helper container shares the pod's network namespace and runs
 * one session of OpenSSH on its standard input and output, over the engine's API; each connection is a channel of it.
 * The helper ends with this process's connection to it.
 */
export class Links {
  /** By the container and its start: after a restart by hand a helper sits in a namespace that is gone. */
  readonly #entries = new Map<string, Entry>();
  readonly #openings = new FairSemaphore({ permits: openingAtOnce });

  constructor(
    private readonly parts: { engine: Engine; containers: Containers; names: Names; sessions: Sessions },
    /** Debian or Alpine with OpenSSH's server at /usr/sbin/sshd. */
    private readonly image: string,
  ) {}

  async connect(ref: ObjectRef, port: number, signal: AbortSignal): Promise<PodConnection> {
    const name = this.parts.names.of(ref);
    const pod = await this.parts.containers.find(name, signal, name);
    if (pod?.State.Status !== 'running') throw new ClusterError('not_found', 'The pod is not running.');
    const link = await untilAborted(signal, this.#linkTo(pod));
    const connection = link.connect(port);
    try {
      return await untilAborted(signal, connection);
    } catch (error) {
      // One that comes after the caller has gone is closed.
      void connection.then((late) => late.destroy()).catch(() => undefined);
      throw error;
    }
  }

  #linkTo(pod: ContainerAnswer): Promise<Link> {
    const key = `${pod.Id}@${pod.State.StartedAt}`;
    const known = this.#entries.get(key);
    if (known) return known.link.then((link) => (link.isClosed ? this.#replace(key, known, pod) : link));
    return this.#begin(key, pod);
  }

  #replace(key: string, old: Entry, pod: ContainerAnswer): Promise<Link> {
    if (this.#entries.get(key) === old) this.#entries.delete(key);
    return this.#linkTo(pod);
  }

  #begin(key: string, pod: ContainerAnswer): Promise<Link> {
    const entry: Entry = {
      idle: null,
      link: this.#open(pod, (isIdle) => {
        if (entry.idle) clearTimeout(entry.idle);
        entry.idle = isIdle ? setTimeout(() => this.#end(key, entry), idleMs).unref() : null;
      }),
    };
    this.#entries.set(key, entry);
    entry.link.catch(() => this.#entries.delete(key));
    return entry.link;
  }

  #end(key: string, entry: Entry): void {
    this.#entries.delete(key);
    void entry.link.then((link) => link.close()).catch(() => undefined);
  }

  /** Shared by all waiters, so it is not aborted when one of them gives up. */
  async #open(pod: ContainerAnswer, onIdle: (isIdle: boolean) => void): Promise<Link> {
    const { names, sessions } = this.parts;
    const end = sessions.begin(names.teamOf(pod.Config.Labels));
    const signal = AbortSignal.timeout(openMs);
    try {
      return await this.#openings.run(() => this.#start(pod, { onIdle, onEnd: end }, signal), { signal });
    } catch (error) {
      end();
      throw error;
    }
  }

  async #start(
    pod: ContainerAnswer,
    { onIdle, onEnd }: { onIdle: (isIdle: boolean) => void; onEnd: () => void },
    signal: AbortSignal,
  ): Promise<Link> {
    const { containers, engine, names } = this.parts;
    const keys = createLinkKeys();
    const id = await containers.create(names.link(randomBytes(8).toString('hex')), this.#body(pod), signal);
    let socket: Duplex | undefined;
    try {
      await containers.upload(id, doorFolder, await linkArchive(keys), signal);
      const query = { stream: true, stdin: true, stdout: true, stderr: true };
      socket = await engine.upgrade({ method: 'POST', path: `/containers/${id}/attach`, query, signal });
      // Its end is seen by the link.
      socket.on('error', () => undefined).once('close', onEnd);
      await containers.start(id, signal);
      return await Link.open(socket, keys, onIdle);
    } catch (error) {
      // A helper that starts late ends with it.
      socket?.destroy();
      // Its time may be over. What cannot be removed now goes with `removeAbandoned`.
      await containers.remove(id, AbortSignal.timeout(removeMs)).catch(() => undefined);
      throw error;
    }
  }

  #body(pod: ContainerAnswer): object {
    return {
      Image: this.image,
      User: `${doorUser}:${doorUser}`,
      Entrypoint: linkCommand,
      Cmd: [],
      Labels: this.parts.names.linkLabels(pod.Id, pod.Config.Labels),
      StopTimeout: 0,
      OpenStdin: true,
      StdinOnce: true,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      HostConfig: {
        ...confinement,
        AutoRemove: true,
        NetworkMode: `container:${pod.Id}`,
        ReadonlyRootfs: true,
        Mounts: [{ Type: 'volume', Target: doorFolder }],
        Memory: memoryBytes,
        MemorySwap: memoryBytes,
        PidsLimit: processesAtMost,
        // What passes through would be written to the log otherwise.
        LogConfig: { Type: 'none' },
      },
    };
  }

  /** Removes helpers that a crash has left before they started. */
  async removeAbandoned(signal: AbortSignal): Promise<void> {
    const links = await this.parts.containers.list({ kind: 'link' }, signal);
    const isAbandoned = ({ State, Created }: (typeof links)[number]) =>
      State !== 'running' && Date.now() - Created * 1000 > abandonedMs;
    for (const { Id } of links.filter(isAbandoned)) await this.parts.containers.remove(Id, signal);
  }

  close(): void {
    for (const [key, entry] of this.#entries) this.#end(key, entry);
  }
}
