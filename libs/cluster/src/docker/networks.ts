import type { Owner } from '../objects.js';
import type { Containers } from './containers.js';
import type { Engine } from './engine.js';
import type { Labels, ListedContainer, NetworkAnswer, PodmanNetworkAnswer } from './engine-answer.js';
import { EngineRefusal, isMissing, isNameTaken } from './engine-errors.js';
import { isRunning, type Keepers } from './keepers.js';
import { ofAnyInstallation, type Names } from './names.js';

const attempts = 3;
const inUse = /being used|active endpoints|associated containers/i;
const missing = /network .*not found|unable to find network|could not find .*network/i;
/** In one `tend`, after an engine's host has started anew. */
const keepersAtOnce = 32;

/**
 * A bridge network for each workspace, the boundary between tenants. Docker isolates bridges from each other; Podman
 * does so only between networks that both have the option `isolate`, so all have it and nothing runs on its default
 * network.
 *
 * On Podman a network's end may take the isolation of all others away (`Keepers`). So networks end when no pod of
 * anybody runs, or when too many are left; each end is followed by a repair. Networks are read by Podman's own API
 * alone: an answer of its Docker API leaves out `isolate` by deleting it from the memory of the service
 * (containers/podman#15907), and what then starts first in a network is in one that is not isolated.
 */
export class Networks {
  /** Those that this process has created or found. */
  readonly #known = new Set<string>();

  constructor(
    private readonly parts: { engine: Engine; names: Names; containers: Containers; keepers: Keepers },
    /** On Podman, networks without a pod that stay because others have some. */
    private readonly idleAtMost: number,
  ) {}

  /**
   * Runs an action that needs the network of a workspace, and creates the network where it is missing. The network may
   * also be removed between the two, with the workspace's last pod; then the action runs again, so it must be safe to
   * repeat. `image`: any that the engine has.
   */
  async with<T>(owner: Owner, image: string, signal: AbortSignal, action: (network: string) => Promise<T>): Promise<T> {
    const { engine, keepers, names } = this.parts;
    const name = names.network(owner.workspaceId);
    const isPodman = (await engine.kind(signal)) === 'podman';
    for (let attempt = 1; ; attempt += 1) {
      if (!this.#known.has(name)) await this.#create(name, owner, isPodman, signal);
      this.#known.add(name);
      try {
        if (isPodman) await keepers.ensure(owner.workspaceId, image, signal);
        return await action(name);
      } catch (error) {
        if (attempt === attempts || !(error instanceof EngineRefusal) || !missing.test(error.text)) throw error;
        this.#known.delete(name);
      }
    }
  }

  async #create(name: string, owner: Owner, isPodman: boolean, signal: AbortSignal): Promise<void> {
    const options = isPodman ? { isolate: 'true' } : {};
    const { engine, names } = this.parts;
    const body = {
      Name: name,
      CheckDuplicate: true,
      Driver: 'bridge',
      // On Docker one interface for each workspace, since that has one network: engines before Docker 24 would create
      // two of one name in a race.
      Options: { ...options, 'com.docker.network.bridge.name': names.bridge(owner.workspaceId, isPodman) },
      Labels: names.networkLabels(owner),
    };
    try {
      await engine.json({ method: 'POST', path: '/networks/create', body, signal });
    } catch (error) {
      if (!isNameTaken(error)) throw error;
    }
  }

  /** The address at which names of this network are resolved, seen from inside of it. */
  async resolver(name: string, signal: AbortSignal): Promise<string> {
    const { engine } = this.parts;
    if ((await engine.kind(signal)) === 'docker') return '127.0.0.11';
    const { subnets } = await engine.json<PodmanNetworkAnswer>({
      method: 'GET',
      path: `/networks/${name}/json`,
      api: 'libpod',
      signal,
    });
    const [{ gateway } = {}] = subnets ?? [];
    if (!gateway) throw new EngineRefusal(500, `network ${name} has no gateway`);
    return gateway;
  }

  /**
   * Removes the network of a workspace that no container needs any more, or leaves that to `tend` where its end could
   * open others.
   */
  async removeIfUnused(workspaceId: string, signal: AbortSignal): Promise<void> {
    const { keeper, users } = this.#parted(await this.parts.containers.list({ workspace: workspaceId }, signal));
    if (users.length > 0) return;
    if (keeper && isRunning(keeper) && (await this.#areOthersUnderWay(signal))) return;
    await this.#end(workspaceId, signal);
  }

  /**
   * Lets each network that is in use have its keeper, and removes what is left of workspaces that have no container any
   * more.
   */
  async tend(signal: AbortSignal): Promise<void> {
    const { containers, engine, keepers } = this.parts;
    const isPodman = (await engine.kind(signal)) === 'podman';
    const byWorkspace = Map.groupBy(await containers.list({}, signal), ({ Labels }) =>
      this.parts.names.workspaceOf(Labels),
    );
    const idle: string[] = [];
    let started = 0;
    for (const workspaceId of await this.#listed(signal)) {
      const { keeper, users } = this.#parted(byWorkspace.get(workspaceId) ?? []);
      const [user] = users.filter(isRunning);
      const isKept = !!keeper && isRunning(keeper);
      if (users.length === 0 && isKept) idle.push(workspaceId);
      else if (users.length === 0) await this.#end(workspaceId, signal);
      else if (isPodman && user && !isKept && (started += 1) <= keepersAtOnce) {
        // A later `tend` tries again, and meanwhile the others have theirs.
        await keepers.ensure(workspaceId, user.Image, signal).catch(() => signal.throwIfAborted());
      }
    }
    const left = idle.length > 0 && (await this.#areOthersUnderWay(signal)) ? this.idleAtMost : 0;
    for (const workspaceId of idle.slice(left)) await this.#end(workspaceId, signal);
  }

  /** The workspaces that have a network. Forgets the networks of others, which another process has removed. */
  async #listed(signal: AbortSignal): Promise<readonly string[]> {
    const knownBefore = [...this.#known];
    const workspaceIds = await this.#workspaces(signal);
    const present = new Set(workspaceIds.map((workspaceId) => this.parts.names.network(workspaceId)));
    for (const name of knownBefore) if (!present.has(name)) this.#known.delete(name);
    return workspaceIds;
  }

  async #workspaces(signal: AbortSignal): Promise<readonly string[]> {
    const { names } = this.parts;
    const filters = names.filter({ kind: 'network' });
    return (await this.#labelsOfAll(filters, signal)).flatMap(
      (labels) => (names.isOurs(labels) && names.workspaceOf(labels)) || [],
    );
  }

  async #labelsOfAll(filters: object, signal: AbortSignal): Promise<readonly (Labels | null | undefined)[]> {
    const { engine } = this.parts;
    const call = { method: 'GET', query: { filters }, signal } as const;
    if ((await engine.kind(signal)) === 'docker') {
      return (await engine.json<NetworkAnswer[]>({ ...call, path: '/networks' })).map(({ Labels }) => Labels);
    }
    return (await engine.json<PodmanNetworkAnswer[]>({ ...call, path: '/networks/json', api: 'libpod' })).map(
      ({ labels }) => labels,
    );
  }

  #parted(containers: readonly ListedContainer[]) {
    const isKeeper = ({ Labels }: ListedContainer): boolean => this.parts.names.kindOf(Labels) === 'keeper';
    return { keeper: containers.find(isKeeper), users: containers.filter((container) => !isKeeper(container)) };
  }

  /** Whether pods run on the engine, of whichever installation. */
  async #areOthersUnderWay(signal: AbortSignal): Promise<boolean> {
    const query = { limit: 1, filters: { ...ofAnyInstallation('pod'), status: ['running'] } };
    const pods = await this.parts.engine.json<ListedContainer[]>({
      method: 'GET',
      path: '/containers/json',
      query,
      signal,
    });
    return pods.length > 0;
  }

  async #end(workspaceId: string, signal: AbortSignal): Promise<void> {
    const { engine, keepers, names } = this.parts;
    const isPodman = (await engine.kind(signal)) === 'podman';
    const name = names.network(workspaceId);
    this.#known.delete(name);
    try {
      if (isPodman) await keepers.remove(workspaceId, signal);
      await engine.json({ method: 'DELETE', path: `/networks/${name}`, signal });
    } catch (error) {
      // A pod of the workspace has come meanwhile; its network gets its keeper back by `tend`.
      if (!isMissing(error) && !(error instanceof EngineRefusal && inUse.test(error.text))) throw error;
    } finally {
      if (isPodman) await keepers.renewIsolation(signal);
    }
  }
}
