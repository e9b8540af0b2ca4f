import type { Owner } from '../objects.js';
import type { Engine } from './engine.js';
import type { ListedContainer, NetworkAnswer } from './engine-answer.js';
import { EngineRefusal, isMissing, isNameTaken } from './engine-errors.js';
import type { Names } from './names.js';

const attempts = 3;
const inUse = /being used|active endpoints|associated containers/i;
const missing = /network .*not found|unable to find network|could not find .*network/i;

/**
 * A bridge network for each workspace, the boundary between tenants. Docker isolates bridges from each other; Podman does so only between networks that
 * both have the option `isolate`, so all have it and nothing runs on its default network.
 */
export class Networks {
  readonly #known = new Set<string>();

  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
  ) {}

  /**
   * Runs an action that needs the network of a workspace, and creates the network where it is missing. The network may also be removed between the two, with
   * the workspace's last pod; then the action runs again, so it must be safe to repeat.
   */
  async with<T>(owner: Owner, signal: AbortSignal, action: (network: string) => Promise<T>): Promise<T> {
    const name = this.names.network(owner.workspaceId);
    for (let attempt = 1; ; attempt += 1) {
      if (!this.#known.has(name)) await this.#create(name, owner, signal);
      this.#known.add(name);
      try {
        return await action(name);
      } catch (error) {
        if (attempt === attempts || !(error instanceof EngineRefusal) || !missing.test(error.text)) throw error;
        this.#known.delete(name);
      }
    }
  }

  async #create(name: string, owner: Owner, signal: AbortSignal): Promise<void> {
    const options = (await this.engine.kind(signal)) === 'podman' ? { isolate: 'true' } : {};
    const body = {
      Name: name,
      CheckDuplicate: true,
      Driver: 'bridge',
      // One interface has one network: engines before Docker 24 would create two of one name in a race.
      Options: { ...options, 'com.docker.network.bridge.name': this.names.bridge(owner.workspaceId) },
      Labels: this.names.networkLabels(owner),
    };
    try {
      await this.engine.json({ method: 'POST', path: '/networks/create', body, signal });
    } catch (error) {
      if (!isNameTaken(error)) throw error;
    }
  }

  /** The address at which names of this network are resolved, seen from inside of it. */
  async resolver(name: string, signal: AbortSignal): Promise<string> {
    if ((await this.engine.kind(signal)) === 'docker') return '127.0.0.11';
    const { IPAM } = await this.engine.json<NetworkAnswer>({ method: 'GET', path: `/networks/${name}`, signal });
    const gateway = IPAM.Config?.find(({ Gateway }) => Gateway)?.Gateway;
    if (!gateway) throw new EngineRefusal(500, `network ${name} has no gateway`);
    return gateway;
  }

  /** Removes the network of a workspace that no container needs any more. */
  async removeIfUnused(workspaceId: string, signal: AbortSignal): Promise<void> {
    const query = { all: true, limit: 1, filters: this.names.filter({ workspace: workspaceId }) };
    const users = await this.engine.json<ListedContainer[]>({ method: 'GET', path: '/containers/json', query, signal });
    if (users.length > 0) return;
    const name = this.names.network(workspaceId);
    this.#known.delete(name);
    try {
      await this.engine.json({ method: 'DELETE', path: `/networks/${name}`, signal });
    } catch (error) {
      // A pod of the workspace has come meanwhile.
      if (!isMissing(error) && !(error instanceof EngineRefusal && inUse.test(error.text))) throw error;
    }
  }

  /** Removes what is left of workspaces that have no container any more. */
  async removeUnused(signal: AbortSignal): Promise<void> {
    const query = { filters: this.names.filter({ kind: 'network' }) };
    const networks = await this.engine.json<NetworkAnswer[]>({ method: 'GET', path: '/networks', query, signal });
    for (const { Labels } of networks) {
      const workspaceId = this.names.workspaceOf(Labels);
      if (this.names.isOurs(Labels) && workspaceId) await this.removeIfUnused(workspaceId, signal);
    }
  }
}
