import { Nothing, notFound, requireService, type CallContext } from '@atoll/contracts';
import {
  type CheckPodWorkload,
  type LeasedSlice,
  type PodStart,
  type PodSubscription,
  type PodWorkload,
  type StartPodWorkload,
  type Workload,
} from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { ClusterRows } from '../clusters/cluster-rows.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { hasAnswered } from '../model/cluster.entity.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { PodEnds } from '../subscriptions/pod-ends.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { givingBackWorkload, liveWorkload } from '../model/workload.machine.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { notActive, NotStarted } from './not-started.js';
import { WorkloadRoom } from './workload-room.js';
import { WorkloadStarting } from './workload-starting.js';
import { workloadView } from './workload-view.js';

/** The workloads of pods: one for each start of a pod, whatever dies between the two services. */
@Injectable()
export class PodWorkloadsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly gate: TeamGate,
    private readonly pools: PoolCatalogue,
    private readonly clusters: ClusterRows,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
    private readonly room: WorkloadRoom,
    private readonly starting: WorkloadStarting,
    private readonly podEnds: PodEnds,
  ) {}

  async check(
    { subscription_id, vgpus, team_id }: CheckPodWorkload,
    { caller }: CallContext,
  ): Promise<PodSubscription> {
    requireService(caller);
    const { manager } = this.dataSource;
    const subscription = await this.subscriptionOf(subscription_id);
    const { teamId, workspaceId, poolId, profile } = subscription;
    if (team_id !== undefined && team_id !== teamId) throw notFound('subscription');
    const { gpuaasId, regionId } = await this.pools.pool(poolId);
    const [region] = await this.dataSource.query<{ region_name: string }[]>(
      'SELECT region_name FROM region WHERE region_id = $1',
      [regionId],
    );
    return {
      subscription_id,
      team_id: teamId,
      workspace_id: workspaceId,
      gpuaas_id: gpuaasId,
      region_id: regionId,
      region_name: region?.region_name ?? '',
      profile,
      vgpus: subscription.vgpus,
      vgpus_beside_pods: await this.besidePods(manager, subscription_id),
      refusal: (await this.clusterRefusal(gpuaasId)) ?? (await this.refusal(manager, subscription, vgpus)),
    };
  }

  async start(asked: StartPodWorkload, context: CallContext): Promise<PodWorkload> {
    requireService(context.caller);
    const { pod_id, start, subscription_id, vgpus, pod_name, requested_by = null } = asked;
    const known = await this.find(pod_id, start);
    if (known) return this.viewOf(asked, workloadView(known));
    const { teamId, workspaceId, poolId } = await this.subscriptionOf(subscription_id);
    await this.gate.requireGrowth(context.caller, teamId, 'subscription');
    const pool = await this.pools.pool(poolId);
    const request = {
      pool,
      subscriptionId: subscription_id,
      teamId,
      workspaceId,
      name: pod_name,
      vgpus,
      pod: { pod_id, start },
      requestedBy: requested_by,
      context,
    };
    try {
      return await this.viewOf(asked, await this.starting.start(request));
    } catch (error) {
      if (!(error instanceof NotStarted)) throw error;
      return {
        pod_id,
        start,
        workload_id: null,
        status: error.status,
        reason: error.message,
        slices: [],
        cluster_setting: 0,
      };
    }
  }

  async end({ pod_id, start }: PodStart, context: CallContext): Promise<Nothing> {
    requireService(context.caller);
    await this.transactions.run(async (manager) => {
      await manager.query(
        `INSERT INTO pod_end (pod_id, ended_start) VALUES ($1, $2)
         ON CONFLICT (pod_id) DO UPDATE SET ended_start = GREATEST(pod_end.ended_start, excluded.ended_start)`,
        [pod_id, start],
      );
      const ids = await manager.query<{ workload_id: string; team_id: string }[]>(
        `SELECT workload_id, team_id FROM workload WHERE pod_id = $1 AND pod_start <= $2 AND ${liveWorkload} ORDER BY workload_id`,
        [pod_id, start],
      );
      for (const { workload_id } of ids) await this.workloads.send(manager, workload_id, 'STOP', causeOf(context));
      if (ids[0]) await this.podEnds.note(manager, pod_id, ids[0].team_id);
    });
    return new Nothing();
  }

  private async find(podId: string, start: number): Promise<WorkloadEntity | undefined> {
    const query = 'SELECT * FROM workload WHERE pod_id = $1 AND pod_start = $2';
    const [raw] = await this.dataSource.query<object[]>(query, [podId, start]);
    return raw && this.workloads.rowOf(raw);
  }

  private async subscriptionOf(subscriptionId: string): Promise<SubscriptionEntity> {
    const found = await this.subscriptions.find(subscriptionId);
    if (!found) throw notFound('subscription');
    return found;
  }

  private async refusal(
    manager: EntityManager,
    held: SubscriptionEntity,
    vgpus: number,
  ): Promise<PodSubscription['refusal']> {
    const { status, message } = notActive(held) ?? {};
    if (status === 'failed' && message !== undefined) return { code: 'conflict', message };
    const refusal = await (status === 'waiting'
      ? this.room.refusal(manager, held, vgpus)
      : this.room.refusalOfPod(manager, held, vgpus));
    return !refusal || refusal instanceof NotStarted
      ? null
      : { code: 'insufficient_capacity', message: refusal.message };
  }

  private async besidePods(manager: EntityManager, subscriptionId: string): Promise<number> {
    const [{ used = 0 } = {}] = await manager.query<{ used: number }[]>(
      `SELECT coalesce(sum(vgpus), 0)::int AS used FROM workload
       WHERE subscription_id = $1 AND pod_id IS NULL AND ${liveWorkload} AND NOT ${givingBackWorkload}`,
      [subscriptionId],
    );
    return used;
  }

  /** A cluster that does not answer, or cannot be used, takes nothing new. Why it cannot is for its operator. */
  private async clusterRefusal(gpuaasId: string): Promise<PodSubscription['refusal']> {
    const cluster = await this.clusters.read(this.dataSource.manager, gpuaasId);
    const { status, since } = cluster;
    if (status !== 'unreachable' || since === null) return null;
    const is = hasAnswered(cluster) ? 'been out of use' : 'not answered';
    const message = `The cluster of this GPU service has ${is} since ${since.toISOString()}; nothing new can start there.`;
    return { code: 'unavailable', message };
  }

  private async viewOf(
    { pod_id, start }: PodStart,
    { workload_id, subscription_id, status, reason }: Workload,
  ): Promise<PodWorkload> {
    const slices = await this.dataSource.query<LeasedSlice[]>(
      `SELECT lease_id, node_name, gpu.uuid AS gpu_uuid, gpu.board, lease.profile, slot_start, gpu_instance_id AS instance_id, true AS is_simulated
       FROM lease JOIN gpu USING (gpu_id) JOIN node USING (node_id) WHERE lease.workload_id = $1 ORDER BY lease_id`,
      [workload_id],
    );
    const [cluster] = await this.dataSource.query<{ setting: string }[]>(
      `SELECT setting FROM cluster JOIN pool USING (gpuaas_id) JOIN subscription USING (pool_id) WHERE subscription_id = $1`,
      [subscription_id],
    );
    return { pod_id, start, workload_id, status, reason, slices, cluster_setting: Number(cluster?.setting ?? 0) };
  }
}
