import { notFound, pageWindow, personOf, requirePermission, type CallContext } from '@atoll/contracts';
import {
  type ListWorkloads,
  type StartWorkload,
  type Workload,
  type WorkloadPage,
  type WorkloadPath,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { WorkloadStarting } from './workload-starting.js';
import { workloadView } from './workload-view.js';
import { listedWorkload } from '../model/workload.machine.js';

/** What runs on subscriptions. */
@Injectable()
export class WorkloadsService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly pools: PoolCatalogue,
    private readonly gate: TeamGate,
    private readonly teams: TeamDirectory,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
    private readonly starting: WorkloadStarting,
  ) {}

  async start({ subscription_id, name, vgpus = 1 }: StartWorkload, context: CallContext): Promise<Workload> {
    const kept = await this.transactions.kept<Workload>(context);
    if (kept) return kept;
    const subscription = await this.subscriptions.find(subscription_id);
    if (!subscription) throw notFound('subscription');
    const { teamId, workspaceId, poolId } = subscription;
    requirePermission(context.caller, teamId, 'useResources', 'subscription');
    await this.gate.requireGrowth(context.caller, teamId, 'subscription');
    const pool = await this.pools.pool(poolId);
    const requestedBy = personOf(context.caller);
    const place = { pool, subscriptionId: subscription_id, teamId, workspaceId };
    return this.starting.start({ ...place, name, vgpus, requestedBy, context });
  }

  /** Repeated it changes nothing. */
  async stop({ workload_id }: WorkloadPath, context: CallContext): Promise<Workload> {
    const found = await this.workloads.find(workload_id);
    if (!found) throw notFound('workload');
    requirePermission(context.caller, found.teamId, 'useResources', 'workload');
    return this.transactions.run(async (manager) => {
      const workload = await this.workloads.lock(manager, workload_id);
      if (!workload) throw notFound('workload');
      if (workload.podId !== null)
        throw new AppError('conflict', `The workload belongs to the pod ${workload.name}. Stop the pod instead.`);
      return workloadView((await this.workloads.move(manager, workload, 'STOP', causeOf(context))) ?? workload);
    });
  }

  async list(asked: ListWorkloads, { caller }: CallContext): Promise<WorkloadPage> {
    const { team_id, subscription_id, include_ended } = asked;
    await this.teams.teamFor(caller, team_id, 'readTeam');
    if (subscription_id !== undefined) await this.requireOfTeam(subscription_id, team_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    // A text of its own for each case, so that the index of live rows serves those that ask for live rows.
    const where = `team_id = $1 AND ${subscription_id === undefined ? '$2::bigint IS NULL' : 'subscription_id = $2'}${isWhole ? '' : ` AND ${listedWorkload}`}`;
    const { total, rows } = await readPage(this.statements, {
      from: `workload WHERE ${where}`,
      order: 'created_at, workload_id',
      window: 'LIMIT $3 OFFSET $4',
      values: [team_id, subscription_id ?? null, limit, offset],
    });
    return { data: rows.map((raw) => workloadView(this.workloads.rowOf(raw))), pagination: { page, limit, total } };
  }

  private async requireOfTeam(subscriptionId: string, teamId: string): Promise<void> {
    const query = 'SELECT FROM subscription WHERE subscription_id = $1 AND team_id = $2';
    const found = await this.statements.query(query, [subscriptionId, teamId]);
    if (found.length === 0) throw notFound('subscription');
  }
}
