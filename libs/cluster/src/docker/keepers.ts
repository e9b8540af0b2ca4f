import { smallBody } from './container-body.js';
import type { Containers } from './containers.js';
import { doorUser } from './door-files.js';
import type { Engine } from './engine.js';
import type { ListedContainer } from './engine-answer.js';
import { EngineRefusal, isMissing, isNameTaken } from './engine-errors.js';
import type { Names } from './names.js';

const memoryBytes = 32 * 1024 * 1024;
const processesAtMost = 8;
/**
 * Where Podman 4 and newer mount the host's own catatonit for `Init`. With `-P` it waits for a signal and does nothing
 * else.
 */
const pause = ['/run/podman-init', '-P'];

/**
 * On Podman, a container in the network of each workspace that stays when the pods go. Netavark with iptables (1.x)
 * keeps all networks apart by one jump, `FORWARD -j NETAVARK_ISOLATION_1`, which it removes when the last container of
 * any isolated network ends, and inserts when one starts. With a keeper that end is the platform's decision, not that
 * of a tenant's program.
 */
export class Keepers {
  constructor(private readonly parts: { engine: Engine; containers: Containers; names: Names }) {}

  /**
   * Lets the keeper of a workspace's network run. It is created, where it is missing, from an image that the engine
   * has; no program of the image runs in it, so that it may be a tenant's.
   */
  async ensure(workspaceId: string, image: string, signal: AbortSignal): Promise<void> {
    const { containers, names } = this.parts;
    const name = names.keeper(workspaceId);
    try {
      await containers.start(name, signal);
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      // What cannot start, such as one whose network is another by now, is made anew.
      if (!isMissing(error)) await containers.remove(name, signal);
      await containers.start(await containers.create(name, this.#body(workspaceId, image), signal), signal);
    }
  }

  async remove(workspaceId: string, signal: AbortSignal): Promise<void> {
    await this.parts.containers.remove(this.parts.names.keeper(workspaceId), signal);
  }

  async running(signal: AbortSignal): Promise<readonly ListedContainer[]> {
    return (await this.parts.containers.list({ kind: 'keeper' }, signal)).filter(isRunning);
  }

  /** Inserts the jump again where it is missing: whatever starts in an isolated network does so. */
  async renewIsolation(signal: AbortSignal): Promise<void> {
    const [keeper] = await this.running(signal);
    if (keeper) await this.#restart(keeper, signal);
  }

  /** The same for networks whose own rules are missing too. */
  async renewNetworks(keepers: readonly Pick<ListedContainer, 'Id'>[], signal: AbortSignal): Promise<void> {
    const { engine, names } = this.parts;
    const path = '/networks';
    const Name = names.scratchNetwork();
    // Podman reads what networks are from its files again when there is one more; its memory may have lost that they
    // are isolated (`Networks`).
    await engine
      .json({ method: 'POST', path: `${path}/create`, body: { Name, Labels: names.guardLabels('scratch') }, signal })
      .catch(ifTaken);
    await engine.json({ method: 'DELETE', path: `${path}/${Name}`, signal }).catch(ifMissing);
    for (const keeper of keepers) await this.#restart(keeper, signal);
  }

  async #restart({ Id }: Pick<ListedContainer, 'Id'>, signal: AbortSignal): Promise<void> {
    const restart = { method: 'POST', path: `/containers/${Id}/restart`, query: { t: 0 }, signal } as const;
    // Whoever removes one renews the isolation then.
    await this.parts.engine.json(restart).catch(ifMissing);
  }

  #body(workspaceId: string, image: string): object {
    const { names } = this.parts;
    return {
      Image: image,
      User: `${doorUser}:${doorUser}`,
      Entrypoint: pause,
      Cmd: [],
      Healthcheck: { Test: ['NONE'] },
      Labels: names.keeperLabels(workspaceId),
      StopTimeout: 0,
      HostConfig: { ...smallBody(memoryBytes, processesAtMost), Init: true, NetworkMode: names.network(workspaceId) },
    };
  }
}

export const isRunning = ({ State }: ListedContainer): boolean => State === 'running';

function ifMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}

function ifTaken(error: unknown): void {
  if (!isNameTaken(error)) throw error;
}
