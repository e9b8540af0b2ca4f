import { inBackground, OutageLog } from '@atoll/database';
import { Rounds } from '@atoll/waiting';
import { Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { PodsSettings } from '../pods-settings.js';

/** Rows in one look at a cluster. */
const perLook = 500;
const lookMs = 8_000;

/**
 * Goes round the clusters from time to time. One that hangs is looked at no second time meanwhile, and keeps no other
 * from its look.
 */
export abstract class ClusterRounds implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected readonly logger = new Logger(this.constructor.name);
  private readonly outages = new OutageLog(this.logger);
  /** Aborted where the service stops. */
  protected readonly stopping = new AbortController();
  private readonly looking = new Map<string, Promise<void>>();
  /** By cluster: the last key of the page at which a look has failed. */
  private readonly failedAt = new Map<string, string>();
  private readonly rounds = new Rounds(() => inBackground(() => this.go()).then(() => this.everyMs));

  /** `what` is looked for on each cluster, for the log: `the VMs`. */
  protected constructor(
    private readonly what: string,
    protected readonly settings: PodsSettings,
    protected readonly dataSource: DataSource,
  ) {}

  protected abstract readonly everyMs: number;

  /** The GPU services whose clusters there is something to look at on, by `clustersBy`. */
  protected abstract due(): Promise<readonly string[]>;

  /** One look at one cluster. What it throws is logged, and the next round tries again. */
  abstract look(gpuaasId: string): Promise<unknown>;

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.rounds.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.rounds.stop();
    await Promise.all(this.looking.values());
  }

  /** The GPU services that a statement finds, such as that of `clustersOf`. */
  protected async clustersBy(statement: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ gpuaas_id: string }[]>(statement);
    return rows.map(({ gpuaas_id }) => gpuaas_id);
  }

  /** Aborted after so long, and where the service stops. */
  protected within(ms: number): AbortSignal {
    return AbortSignal.any([this.stopping.signal, AbortSignal.timeout(ms)]);
  }

  private async go(): Promise<void> {
    try {
      for (const gpuaasId of await this.due()) this.once(this.looking, gpuaasId, () => this.look(gpuaasId));
    } catch (error) {
      this.warn(`Cannot look at ${this.what}; retrying`, error);
    }
  }

  /** Begins the work for a cluster unless it is among those that run. */
  protected once(running: Map<string, Promise<void>>, gpuaasId: string, work: () => Promise<unknown>): void {
    if (running.has(gpuaasId) || this.stopping.signal.aborted) return;
    const task = work()
      .then(() => undefined)
      .catch((error: unknown) => this.warn(`Cannot look at ${this.what} of GPU service ${gpuaasId}; retrying`, error))
      .finally(() => running.delete(gpuaasId));
    running.set(gpuaasId, task);
  }

  /**
   * Looks at what `page` finds on a cluster with keys after the last one seen, from `first` on, page by page until
   * there is none or the service stops. Where a page has failed, the next time begins after it, so that no page keeps
   * those behind it from their look.
   */
  protected async inPages<Row extends { readonly id: string }>(
    gpuaasId: string,
    first: string,
    page: (after: string, limit: number) => Promise<readonly Row[]>,
    look: (rows: readonly Row[], signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    let after = this.failedAt.get(gpuaasId) ?? first;
    let isFromFirst = !this.failedAt.delete(gpuaasId);
    while (!this.stopping.signal.aborted) {
      const rows = await page(after, perLook);
      const last = rows.at(-1);
      if (last) {
        this.failedAt.set(gpuaasId, last.id);
        await look(rows, this.within(lookMs));
        this.failedAt.delete(gpuaasId);
        after = last.id;
      } else if (isFromFirst) {
        return;
      } else {
        [after, isFromFirst] = [first, true];
      }
    }
  }

  private warn(what: string, error: unknown): void {
    if (!this.stopping.signal.aborted) this.outages.log('warn', what, error);
  }
}
