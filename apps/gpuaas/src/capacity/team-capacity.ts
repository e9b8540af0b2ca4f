import { setTimeout as delay } from 'node:timers/promises';
import { teamCapacityChanged } from '@atoll/contracts/gpuaas';
import { afterCommit, OutageLog, Statements, Transactions } from '@atoll/database';
import { Outbox } from '@atoll/events';
import { WakeUp } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { liveBaremetal } from '../model/baremetal-instance.machine.js';
import { liveSubscription } from '../model/subscription.machine.js';

const everyMs = 1_000;
/** Between two rounds: so many times as long as the first took, within these bounds. */
const gather = { times: 10, leastMs: 50, mostMs: 1_000 };
const batch = 1_000;

/**
 * Publishes the GPU capacity that each team holds. Every change inserts a row that marks the team, so that changes of
 * one team do not wait for each other; the capacity is then published once for all marks.
 */
@Injectable()
export class TeamCapacity implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly outages = new OutageLog(new Logger(TeamCapacity.name));
  private readonly stopping = new AbortController();
  private readonly wakeUp = new WakeUp();
  private loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly transactions: Transactions,
    private readonly statements: Statements,
    private readonly outbox: Outbox,
  ) {}

  onApplicationBootstrap(): void {
    this.loop = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    this.wakeUp.ring();
    await this.loop;
  }

  /** Notes, in the transaction that changes what these teams hold, that it is to be published. */
  async note(manager: EntityManager, teamIds: readonly string[]): Promise<void> {
    await manager.query('INSERT INTO capacity_change (team_id) SELECT * FROM unnest($1::uuid[])', [
      [...new Set(teamIds)],
    ]);
    afterCommit(manager, this.wakeUp.ring);
  }

  /**
   * Tells of the teams that were noted. Returns how many. Of several replicas one at a time does so, so that revisions
   * are in the order of what they tell.
   */
  async tell(): Promise<number> {
    const noted = await this.statements.query('SELECT FROM capacity_change LIMIT 1', []);
    if (noted.length === 0) return 0;
    return this.transactions.run(async (manager) => {
      const [lock] = await manager.query<{ held: boolean }[]>(
        `SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' team capacity', 0)) AS held`,
      );
      if (!lock?.held) return 0;
      const [noted] = await manager.query<[{ team_id: string }[], number]>(
        'DELETE FROM capacity_change WHERE id IN (SELECT id FROM capacity_change ORDER BY id LIMIT $1) RETURNING team_id',
        [batch],
      );
      const teams = [...new Set(noted.map(({ team_id }) => team_id))];
      if (teams.length > 0) await this.tellOf(manager, teams);
      return teams.length;
    });
  }

  private async tellOf(manager: EntityManager, teamIds: readonly string[]): Promise<void> {
    const teams = await manager.query<
      { team_id: string; revision: string; gpu_ids: string[] | null; has_pool_subscription: boolean }[]
    >(
      `WITH next AS (
         INSERT INTO team_capacity (team_id, revision) SELECT team_id, 1 FROM unnest($1::uuid[]) told (team_id)
         ON CONFLICT (team_id) DO UPDATE SET revision = team_capacity.revision + 1 RETURNING team_id, revision
       )
       SELECT next.team_id, revision,
         EXISTS (SELECT FROM subscription WHERE subscription.team_id = next.team_id AND ${liveSubscription}) AS has_pool_subscription,
         (SELECT array_agg(DISTINCT gpu_id) FROM (
           SELECT gpu_id FROM lease JOIN subscription USING (subscription_id)
           WHERE lost_reason IS NULL AND subscription.team_id = next.team_id AND subscription.${liveSubscription}
           UNION ALL
           SELECT -(n.node_id * 64 + number) FROM baremetal_instance i JOIN baremetal_node n USING (node_id), generate_series(0, n.gpu_count - 1) number
           WHERE i.team_id = next.team_id AND i.${liveBaremetal}
         ) held) AS gpu_ids
       FROM next`,
      [teamIds],
    );
    for (const { team_id, revision, gpu_ids, has_pool_subscription } of teams) {
      await this.outbox.add(manager, teamCapacityChanged, {
        team_id,
        revision: Number(revision),
        gpu_ids: (gpu_ids ?? []).map(Number),
        has_pool_subscription,
      });
    }
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const startedAtMs = performance.now();
      const told = await this.tell().catch((error: unknown) => {
        this.outages.log('warn', 'What teams hold could not be told; retrying', error);
        return 0;
      });
      // Changes come in crowds: the next ones are told of together.
      if (told > 0) await delay(gatherMs(performance.now() - startedAtMs));
      else await this.wakeUp.wait(everyMs);
    }
  }
}

function gatherMs(tookMs: number): number {
  return Math.min(gather.mostMs, Math.max(gather.leastMs, gather.times * tookMs));
}
