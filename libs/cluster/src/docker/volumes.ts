import { ClusterError } from '../cluster-error.js';
import type { Volume, VolumeRef } from '../objects.js';
import type { FoundObject, VolumeSight } from '../observations.js';
import type { Engine } from './engine.js';
import type { Labels, VolumeAnswer } from './engine-answer.js';
import { EngineRefusal, isMissing, isNameTaken } from './engine-errors.js';
import type { Names } from './names.js';

/** The engine reads every file of a volume for this figure. */
const usageMs = 600_000;
const inUse = /in use|being used/i;

/**
 * Shared volumes as named volumes of the engine. It enforces no size. Whose one is its label says, never its name:
 * another team's, which a restored database knows no more, is left as it is.
 */
export class Volumes {
  #usage: ReadonlyMap<string, number> = new Map();
  /** By `performance.now()`. */
  #usageReadAtMs = -Infinity;
  #reading = false;

  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
    /** How old the figures of used bytes may become. */
    private readonly usageAgeMs: number,
  ) {}

  async make({ ref, workspaceId }: Volume, signal: AbortSignal): Promise<void> {
    if ((await this.nameOf(ref, signal)) !== null) return;
    const labels = this.names.labels(ref, { teamId: ref.teamId, workspaceId });
    for (const Name of this.names.ofVolume(ref)) {
      // An engine answers with the volume that is there already, whoever made it.
      const { Labels } = await this.#create({ Name, Labels: labels }, signal);
      if (this.names.isOfTeam(Labels, ref.teamId)) return;
      if (!this.names.isOurs(Labels))
        throw new ClusterError('invalid', `A volume named ${Name} exists that Atoll did not create.`);
    }
    throw new ClusterError('invalid', `The volume ${this.names.ofVolume(ref)[1]} belongs to another team.`);
  }

  /** The engine's name of a team's volume; null where the team has none. */
  async nameOf(ref: VolumeRef, signal: AbortSignal): Promise<string | null> {
    for (const name of this.names.ofVolume(ref)) {
      try {
        const { Labels } = await this.engine.json<VolumeAnswer>({ method: 'GET', path: `/volumes/${name}`, signal });
        if (this.names.isOfTeam(Labels, ref.teamId)) return name;
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
    return null;
  }

  async #create(body: { readonly Name: string; readonly Labels: Labels }, signal: AbortSignal): Promise<VolumeAnswer> {
    try {
      return await this.engine.json<VolumeAnswer>({ method: 'POST', path: '/volumes/create', body, signal });
    } catch (error) {
      // Podman, where two requests for one name meet.
      if (!isNameTaken(error)) throw error;
      return this.engine.json<VolumeAnswer>({ method: 'GET', path: `/volumes/${body.Name}`, signal });
    }
  }

  async observe(refs: readonly VolumeRef[], signal: AbortSignal): Promise<readonly VolumeSight[]> {
    const present = new Map((await this.#list(signal)).map(({ Name, Labels }) => [Name, Labels]));
    if (refs.length > 0) this.#refreshUsage();
    return refs.map((ref) => {
      const name = this.names.ofVolume(ref).find((each) => this.names.isOfTeam(present.get(each), ref.teamId));
      return name === undefined
        ? { phase: 'absent' }
        : { phase: 'ready', sizeGb: null, usedBytes: this.#usage.get(name) ?? null };
    });
  }

  async list(signal: AbortSignal): Promise<readonly FoundObject[]> {
    return (await this.#list(signal)).flatMap(({ Labels, CreatedAt }) => {
      const ref = this.names.refOf(Labels);
      return ref ? [{ ref, createdAt: new Date(CreatedAt ?? 0) }] : [];
    });
  }

  async #list(signal: AbortSignal): Promise<readonly VolumeAnswer[]> {
    const query = { filters: this.names.filter({ kind: 'volume' }) };
    const { Volumes: found } = await this.engine.json<{ Volumes: VolumeAnswer[] | null }>({
      method: 'GET',
      path: '/volumes',
      query,
      signal,
    });
    return (found ?? []).filter(({ Labels }) => this.names.isOurs(Labels));
  }

  /** In the background: it can take minutes, and the last figures do meanwhile. */
  #refreshUsage(): void {
    if (this.#reading || performance.now() - this.#usageReadAtMs < this.usageAgeMs) return;
    this.#reading = true;
    void this.#readUsage()
      .then((usage) => (this.#usage = usage))
      // Tried again with the next observation.
      .catch(() => undefined)
      .finally(() => {
        this.#reading = false;
        this.#usageReadAtMs = performance.now();
      });
  }

  async #readUsage(): Promise<ReadonlyMap<string, number>> {
    const { signal } = new AbortController();
    const call = { method: 'GET', path: '/system/df', query: { type: 'volume' }, signal, deadlineMs: usageMs } as const;
    const { Volumes: found } = await this.engine.json<{ Volumes: VolumeAnswer[] | null }>(call);
    return new Map(
      (found ?? []).flatMap(({ Name, UsageData }) =>
        UsageData && UsageData.Size >= 0 ? [[Name, UsageData.Size]] : [],
      ),
    );
  }

  async remove(ref: VolumeRef, signal: AbortSignal): Promise<void> {
    const name = await this.nameOf(ref, signal);
    if (name === null) return;
    try {
      await this.engine.json({ method: 'DELETE', path: `/volumes/${name}`, signal, deadlineMs: usageMs });
    } catch (error) {
      if (isMissing(error)) return;
      const isHeld = error instanceof EngineRefusal && (error.status === 409 || inUse.test(error.text));
      throw isHeld ? new ClusterError('in_use', 'A pod still mounts the volume.', { cause: error }) : error;
    }
  }
}
