import { ClusterError } from '../cluster-error.js';
import type { ObjectRef, Volume } from '../objects.js';
import type { FoundObject, VolumeSight } from '../observations.js';
import type { Engine } from './engine.js';
import type { VolumeAnswer } from './engine-answer.js';
import { EngineRefusal, isMissing, isNameTaken } from './engine-errors.js';
import type { Names } from './names.js';

/** The engine reads every file of a volume for this figure. */
const usageMs = 600_000;
const inUse = /in use|being used/i;

/** Shared volumes as named volumes of the engine. It enforces no size. */
export class Volumes {
  #usage: ReadonlyMap<string, number> = new Map();
  #usageReadAtMs = -Infinity;
  #reading = false;

  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
    /** How old the figures of used bytes may become. */
    private readonly usageAgeMs: number,
  ) {}

  async make({ ref, owner }: Volume, signal: AbortSignal): Promise<void> {
    const body = { Name: this.names.of(ref), Labels: this.names.labels(ref, owner) };
    // An engine answers with the volume that is there already, whoever made it.
    const { Labels } = await this.#create(body, signal);
    if (!this.names.isOurs(Labels)) throw new ClusterError('invalid', `A volume that Atoll has not created is named ${body.Name}.`);
  }

  async #create(body: { readonly Name: string }, signal: AbortSignal): Promise<VolumeAnswer> {
    try {
      return await this.engine.json<VolumeAnswer>({ method: 'POST', path: '/volumes/create', body, signal });
    } catch (error) {
      // Podman, where two requests for one name meet.
      if (!isNameTaken(error)) throw error;
      return this.engine.json<VolumeAnswer>({ method: 'GET', path: `/volumes/${body.Name}`, signal });
    }
  }

  async observe(refs: readonly ObjectRef[], signal: AbortSignal): Promise<readonly VolumeSight[]> {
    const present = new Set((await this.#list(signal)).map(({ Name }) => Name));
    if (refs.length > 0) this.#refreshUsage();
    return refs.map((ref) => {
      const name = this.names.of(ref);
      return present.has(name) ? { phase: 'ready', sizeGb: null, usedBytes: this.#usage.get(name) ?? null } : { phase: 'absent' };
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
    if (this.#reading || Date.now() - this.#usageReadAtMs < this.usageAgeMs) return;
    this.#reading = true;
    void this.#readUsage()
      .then((usage) => (this.#usage = usage))
      // Tried again with the next observation.
      .catch(() => undefined)
      .finally(() => {
        this.#reading = false;
        this.#usageReadAtMs = Date.now();
      });
  }

  async #readUsage(): Promise<ReadonlyMap<string, number>> {
    const { signal } = new AbortController();
    const call = { method: 'GET', path: '/system/df', query: { type: 'volume' }, signal, deadlineMs: usageMs } as const;
    const { Volumes: found } = await this.engine.json<{ Volumes: VolumeAnswer[] | null }>(call);
    return new Map((found ?? []).flatMap(({ Name, UsageData }) => (UsageData && UsageData.Size >= 0 ? [[Name, UsageData.Size]] : [])));
  }

  async remove(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const name = this.names.of(ref);
    try {
      const { Labels } = await this.engine.json<VolumeAnswer>({ method: 'GET', path: `/volumes/${name}`, signal });
      if (!this.names.isOurs(Labels)) throw new ClusterError('invalid', `A volume that Atoll has not created is named ${name}.`);
      await this.engine.json({ method: 'DELETE', path: `/volumes/${name}`, signal, deadlineMs: usageMs });
    } catch (error) {
      if (isMissing(error)) return;
      const isHeld = error instanceof EngineRefusal && (error.status === 409 || inUse.test(error.text));
      throw isHeld ? new ClusterError('in_use', 'A pod still mounts the volume.', { cause: error }) : error;
    }
  }
}
