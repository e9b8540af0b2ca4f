import { ClusterError } from '../cluster-error.js';
import type { Engine, EngineCall } from './engine.js';
import type { ContainerAnswer, ListedContainer, PodmanListedContainer } from './engine-answer.js';
import { EngineRefusal, isHalfRemoved, isMissing, isNameTaken } from './engine-errors.js';
import type { Names } from './names.js';

const removalMs = 60_000;
const removing = /removal of container .* is already in progress|container state improper.*removing/i;

/** Containers of this installation on an engine, by name. One of another owner is never touched. */
export class Containers {
  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
  ) {}

  /** null if there is none. Throws `invalid` if the name belongs to a container of somebody else. */
  async find(name: string, signal: AbortSignal, forPod?: string): Promise<ContainerAnswer | null> {
    try {
      const found = await this.engine.json<ContainerAnswer>({
        method: 'GET',
        path: `/containers/${name}/json`,
        signal,
        forPod,
      });
      if (this.names.isOurs(found.Config.Labels)) return found;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
    throw new ClusterError('invalid', `A container named ${name} exists that Atoll did not create.`);
  }

  /**
   * All of this installation with these labels, in any state. What a removal has left that was cut short is removed
   * first where it prevents the answer.
   */
  async list(wanted: Parameters<Names['filter']>[0], signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const call = {
      method: 'GET',
      path: '/containers/json',
      query: { all: true, filters: this.names.filter(wanted) },
      signal,
    } as const;
    const ask = () => this.engine.json<ListedContainer[]>(call);
    const found = await ask().catch(async (error: unknown) => {
      if (!isHalfRemoved(error)) throw error;
      await this.#finishRemovals(call);
      return ask();
    });
    return found.filter(({ Labels }) => this.names.isOurs(Labels));
  }

  /**
   * Podman's own API lists them, too: as `removing`, or as `created` where a removal by name met the creation. To
   * remove one that another process is removing does no harm.
   */
  async #finishRemovals(call: EngineCall): Promise<void> {
    const listed = await this.engine.json<PodmanListedContainer[]>({ ...call, api: 'libpod' });
    for (const { Id, Labels, State } of listed) {
      if (!this.names.isOurs(Labels)) continue;
      const isLeft = State === 'removing' || (State === 'created' && (await this.#isHalfRemoved(Id, call.signal)));
      if (isLeft) await this.remove(Id, call.signal);
    }
  }

  async #isHalfRemoved(id: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.engine.json({ method: 'GET', path: `/containers/${id}/json`, signal });
      return false;
    } catch (error) {
      if (isMissing(error)) return isHalfRemoved(error);
      throw error;
    }
  }

  /** Returns the container's id; the one that is there already where another process was first. */
  async create(name: string, body: object, signal: AbortSignal, api: 'docker' | 'libpod' = 'docker'): Promise<string> {
    try {
      const query = { name };
      const { Id } = await this.engine.json<{ Id: string }>({
        method: 'POST',
        path: '/containers/create',
        query,
        body,
        signal,
        api,
      });
      return Id;
    } catch (error) {
      if (!isNameTaken(error)) throw error;
      const rival = await this.find(name, signal);
      if (rival) return rival.Id;
      // What a removal has left that was cut short; the next request creates it.
      await this.remove(name, signal);
      throw error;
    }
  }

  /** Nothing happens where it runs already. */
  async start(id: string, signal: AbortSignal): Promise<void> {
    await this.engine.json({ method: 'POST', path: `/containers/${id}/start`, signal });
  }

  /** Puts files into a container, a tar archive below `folder`. */
  async upload(id: string, folder: string, archive: Buffer, signal: AbortSignal): Promise<void> {
    await this.engine.json({
      method: 'PUT',
      path: `/containers/${id}/archive`,
      query: { path: folder },
      body: archive,
      signal,
    });
  }

  /**
   * Ends it if it runs, and removes it with its anonymous volumes. To be called for one that `find` does not see too:
   * where a crash cut a removal short, Podman knows no more than the name of what is left, and what is left keeps the
   * name and the port.
   */
  async remove(id: string, signal: AbortSignal): Promise<void> {
    try {
      const query = { force: true, v: true };
      await this.engine.json({ method: 'DELETE', path: `/containers/${id}`, query, signal, deadlineMs: removalMs });
    } catch (error) {
      if (isMissing(error) || (error instanceof EngineRefusal && removing.test(error.text))) return;
      throw error;
    }
  }
}
