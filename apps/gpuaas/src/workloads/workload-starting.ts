import { notFound, type CallContext } from '@atoll/contracts';
import type { PodStart, Workload } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Allocation, type Admission } from '../allocation/allocation.js';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { ClusterRows } from '../clusters/cluster-rows.js';
import { statusOf } from '../model/subscription-status.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { isAvoided } from '../sharing/node-troubles.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import { settledStates } from '../sharing/pool-terms.js';
import type { PoolRequest } from '../sharing/waiting-requests.js';
import { admitted, SharedTransactions, type Answerable } from '../subscriptions/shared-transactions.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { notActive, NotStarted } from './not-started.js';
import { refusalOf, refusalOfPod, WorkloadRoom, type Free } from './workload-room.js';
import { workloadView } from './workload-view.js';

interface StartRequest {
  readonly pool: KnownPool;
  readonly subscriptionId: string;
  readonly teamId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly vgpus: number;
  /** Whose workload it is to be; undefined: a user asks. */
  readonly pod?: PodStart;
  /** For whom it counts besides the team, as `personOf`; null: nobody. */
  readonly requestedBy: string | null;
  readonly context: CallContext;
}

type PendingStart = Answerable<StartRequest, Workload>;

/** A request that nothing stands against but room, with the subscription, which the transaction has locked. */
type LockedStart = PendingStart & { readonly held: SubscriptionEntity };

/**
 * Starts workloads, of users and of pods. Where slices are sold more than once, requests for one pool share
 * transactions, since each locks the pool; elsewhere those for one subscription do, since each locks that.
 */
@Injectable()
export class WorkloadStarting {
  private readonly shared: SharedTransactions<StartRequest, Workload>;

  constructor(
    transactions: Transactions,
    private readonly gate: TeamGate,
    private readonly allocation: Allocation,
    private readonly clusters: ClusterRows,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
    private readonly room: WorkloadRoom,
    private readonly capacity: TeamCapacity,
  ) {
    this.shared = new SharedTransactions<StartRequest, Workload>(transactions, (manager, all) =>
      this.startAll(manager, all),
    );
  }

  /**
   * For a pod that has the workload of this start already: that one. Throws `insufficient_capacity`, with what would be
   * accepted, `conflict` where the subscription is not active, and `NotStarted` to pods.
   */
  async start(request: StartRequest): Promise<Workload> {
    const { pool, subscriptionId, teamId, pod } = request;
    const key = pool.overcommit > 1 ? `pool ${pool.poolId}` : `subscription ${subscriptionId}`;
    return this.shared.add(key, { owner: teamId, ...(pod && { topic: pod.pod_id }) }, request);
  }

  /** As one after the other. All are for one pool; without overcommit, for one subscription. */
  private async startAll(manager: EntityManager, all: readonly PendingStart[]): Promise<void> {
    const [first] = all;
    if (!first) return;
    const open = await this.lockOpen(manager, all);
    // No other driver takes over until the workloads of pods are there to be counted.
    if (open.some(({ pod }) => pod)) await this.clusters.read(manager, first.pool.gpuaasId, 'share');
    const begun =
      first.pool.overcommit > 1
        ? await this.beginEntitled(manager, first.pool, open)
        : await this.beginOnHeld(manager, open);
    const ids = begun.map(({ workloadId }) => workloadId);
    if (ids.length > 0) await this.workloads.assignLanes(manager, ids);
  }

  /** Those whose subscriptions are active, locked; the others are answered. */
  private async lockOpen(manager: EntityManager, all: readonly PendingStart[]): Promise<LockedStart[]> {
    // The teams before their subscriptions, as whoever ends what a team holds.
    const closings = await this.holdTeams(manager, all);
    const pods = all.flatMap(({ pod }) => pod ?? []);
    const endedIds = await endedOf(manager, pods);
    const rows = await this.subscriptions.lockAll(manager, [
      ...new Set(all.map(({ subscriptionId }) => subscriptionId)),
    ]);
    const byId = new Map(rows.map((row) => [row.subscriptionId, row]));
    // The subscriptions are locked: whoever requested the same at the same time has committed.
    const same = await this.startedOf(manager, pods);
    return all.flatMap((request) => {
      const { pod, subscriptionId, answer } = request;
      const held = byId.get(subscriptionId);
      const answerNow = (): Workload | AppError | undefined => {
        if (pod && endedIds.has(pod.pod_id)) return new NotStarted('stopped', 'The pod was stopped.');
        if (!held) return notFound('subscription');
        return pod ? (same.get(pod.pod_id) ?? notActive(held)) : (closings.get(request) ?? statusRefusal(held));
      };
      const known = answerNow();
      if (known) answer(known);
      return held && !known ? [{ ...request, held }] : [];
    });
  }

  /** Checks the team of a user's workload. For a pod's workload, the pods service answers for what the team holds. */
  private async holdTeams(
    manager: EntityManager,
    all: readonly StartRequest[],
  ): Promise<Map<StartRequest, AppError | undefined>> {
    const byUsers = all.filter(({ pod }) => !pod);
    if (byUsers.length === 0) return new Map();
    const closings = await this.gate.holdAllOpen(
      manager,
      byUsers.map(({ context: { caller }, teamId, workspaceId }) => ({ caller, teamId, workspaceId })),
    );
    return new Map(byUsers.map((request, at) => [request, closings[at]]));
  }

  /** The workloads that these starts of pods have, by pod. */
  private async startedOf(manager: EntityManager, pods: readonly PodStart[]): Promise<Map<string, Workload>> {
    if (pods.length === 0) return new Map();
    const rows = await manager.query<object[]>(
      `SELECT workload.* FROM workload JOIN unnest($1::uuid[], $2::int[]) asked (pod_id, pod_start) USING (pod_id, pod_start)`,
      [pods.map(({ pod_id }) => pod_id), pods.map(({ start }) => start)],
    );
    return new Map(rows.map((raw) => this.workloads.rowOf(raw)).map((row) => [row.podId ?? '', workloadView(row)]));
  }

  /**
   * With overcommit a workload takes leases of its own, or waits for them: those of all are decided on together, so
   * that GPUs are locked once.
   */
  private async beginEntitled(
    manager: EntityManager,
    pool: KnownPool,
    open: readonly LockedStart[],
  ): Promise<WorkloadEntity[]> {
    if (open.length === 0) return [];
    const free = await this.room.freeOf(
      manager,
      open.map(({ held }) => held),
    );
    const decisions = await this.allocation.decide(
      manager,
      pool,
      open.map((request, place) => poolRequestOf(request, free[place])),
    );
    const accepted = admitted(open, decisions);
    if (accepted.length === 0) return [];
    const rows = await this.workloads.insertAll(
      manager,
      accepted.map((request) => ({
        values: valuesOf(request, request.admission.reason),
        cause: causeOf(request.context),
      })),
    );
    const leased = accepted.map(({ answer, admission, subscriptionId, context }, place) => {
      const row = rows[place];
      if (!row) throw new Error('A workload was not inserted.');
      answer(workloadView(row));
      return {
        admission,
        holder: { subscriptionId, workloadId: row.workloadId, isAdded: false },
        cause: causeOf(context),
      };
    });
    await this.allocation.hold(manager, pool, leased);
    await this.capacity.note(
      manager,
      accepted.map(({ teamId }) => teamId),
    );
    return rows;
  }

  /**
   * Without overcommit it takes leases of its subscription: on GPUs that can be used now, before those that cannot, and
   * last on nodes that have failed of late.
   */
  private async beginOnHeld(manager: EntityManager, open: readonly LockedStart[]): Promise<WorkloadEntity[]> {
    const begun: WorkloadEntity[] = [];
    for (const request of open) {
      const { answer, held, vgpus, pod, context } = request;
      const refusal = await (pod
        ? this.room.refusalOfPod(manager, held, vgpus)
        : this.room.refusal(manager, held, vgpus));
      if (refusal) {
        answer(refusal);
        continue;
      }
      const workload = await this.workloads.insert(manager, valuesOf(request, null), causeOf(context));
      await takeHeld(manager, workload, pod !== undefined);
      answer(workloadView(workload));
      begun.push(workload);
    }
    return begun;
  }
}

/** What is requested from the pool, and from the free vGPUs of the subscription. */
function poolRequestOf(
  { held, teamId, requestedBy, vgpus, pod }: LockedStart,
  free: Free = { now: 0, soon: 0 },
): PoolRequest {
  const refusal = pod ? refusalOfPod : refusalOf;
  return {
    teamId,
    requestedBy,
    profile: held.profile,
    vgpus,
    isOnOneNode: pod !== undefined,
    partOf: {
      id: held.subscriptionId,
      refusal: (taken) => refusal(held, { now: free.now - taken, soon: free.soon - taken }, vgpus),
    },
  };
}

function valuesOf(
  { subscriptionId, teamId, name, vgpus, pod }: LockedStart,
  reason: Admission['reason'],
): Partial<WorkloadEntity> {
  const lastError = reason && { ...reason, at: new Date().toISOString() };
  return { subscriptionId, teamId, name, vgpus, podId: pod?.pod_id ?? null, podStart: pod?.start ?? null, lastError };
}

function statusRefusal({ state }: SubscriptionEntity): AppError | undefined {
  const status = statusOf(state);
  if (status === 'active') return undefined;
  return new AppError('conflict', `The subscription is ${status}; workloads can start only on an active subscription.`);
}

/**
 * The pods among these whose start has ended. Waits for each running `end`, so that later statements see its commit.
 */
async function endedOf(manager: EntityManager, pods: readonly PodStart[]): Promise<Set<string>> {
  if (pods.length === 0) return new Set();
  const startOf = new Map(pods.map(({ pod_id, start }) => [pod_id, start]));
  await manager.query(
    'INSERT INTO pod_end (pod_id, ended_start) SELECT pod_id, 0 FROM unnest($1::uuid[]) pod_id ORDER BY pod_id ON CONFLICT DO NOTHING',
    [[...startOf.keys()]],
  );
  const rows = await manager.query<{ pod_id: string; ended_start: number }[]>(
    'SELECT pod_id, ended_start FROM pod_end WHERE pod_id = ANY ($1::uuid[]) ORDER BY pod_id FOR UPDATE',
    [[...startOf.keys()]],
  );
  return new Set(
    rows.flatMap(({ pod_id, ended_start }) => (ended_start >= (startOf.get(pod_id) ?? 0) ? [pod_id] : [])),
  );
}

async function takeHeld(
  manager: EntityManager,
  { subscriptionId, workloadId, vgpus }: WorkloadEntity,
  isOnOneNode: boolean,
): Promise<void> {
  await manager.query(
    `WITH free AS (
       SELECT lease_id, gpu_id, node_id, ${isAvoided} AS is_avoided, gpu.state = ANY ($4) AS is_settled FROM lease JOIN gpu USING (gpu_id)
       WHERE subscription_id = $1 AND workload_id IS NULL AND lost_reason IS NULL AND NOT is_added
     ), nodes AS (
       SELECT node_id FROM free GROUP BY node_id HAVING count(*) >= $3
       ORDER BY bool_or(is_avoided), count(*) FILTER (WHERE is_settled) >= $3 DESC, count(*), node_id LIMIT 1
     )
     UPDATE lease SET workload_id = $2 WHERE lease_id IN (
       SELECT lease_id FROM free WHERE NOT $5 OR node_id IN (SELECT node_id FROM nodes) ORDER BY is_avoided, is_settled DESC, gpu_id, lease_id LIMIT $3
     )`,
    [subscriptionId, workloadId, vgpus, settledStates, isOnOneNode],
  );
}
