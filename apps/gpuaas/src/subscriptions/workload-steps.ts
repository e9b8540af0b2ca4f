import { podWorkloadChanged } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { Outbox } from '@atoll/events';
import {
  DurableMachine,
  touchRows,
  type Cause,
  type Outcome,
  type Passage,
  type StepContext,
} from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { NodeDriver } from '../driver/node-driver.js';
import {
  heldBy,
  isOnLastNode,
  lanesOf,
  nodesLeft,
  noteInstances,
  nothingHeld,
  standingOf,
  type HeldLease,
} from '../sharing/lease-store.js';
import { NodeTroubles } from '../sharing/node-troubles.js';
import { PodEnds } from './pod-ends.js';
import { readiness } from '../allocation/readiness.js';
import { LeaseRelease } from '../allocation/lease-release.js';
import { WaitingQueue } from '../allocation/waiting-queue.js';
import { withdrawRequest } from '../sharing/waiting-requests.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { subscriptionMachine } from '../model/subscription.machine.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { liveWorkload, workloadMachine, type WorkloadEvent, type WorkloadState } from '../model/workload.machine.js';

type Found = Outcome<WorkloadEntity, WorkloadEvent>;

/** Workloads: running once their GPUs are where they are to be, stopped when the nodes say so. */
@Injectable()
export class WorkloadSteps extends DurableMachine<WorkloadEntity, WorkloadState, WorkloadEvent> {
  protected readonly lanes = lanesOf('workload');
  override readonly owner = 'team_id';

  constructor(
    dataSource: DataSource,
    private readonly statements: Statements,
    private readonly driver: NodeDriver,
    private readonly pools: PoolCatalogue,
    private readonly leases: LeaseRelease,
    private readonly waiting: WaitingQueue,
    private readonly capacity: TeamCapacity,
    private readonly outbox: Outbox,
    private readonly podEnds: PodEnds,
    private readonly troubles: NodeTroubles,
  ) {
    super(dataSource, workloadMachine);
  }

  /** One node at a time: a hanging node delays only work on the same node. */
  async step(workload: WorkloadEntity, context: StepContext): Promise<Found> {
    if (workload.state === 'draining') return this.drain(workload);
    if (workload.state !== 'pending' && workload.state !== 'stopping' && workload.state !== 'undoing') return 'rest';
    if (workload.state === 'pending') return this.occupy(workload, context);
    await this.driver.vacate(await this.leasesHere(workload), context.signal);
    if (!isOnLastNode(workload)) return 'lane done';
    if (workload.state === 'stopping') return { event: 'STOPPED' };
    return { event: 'UNDONE' };
  }

  /**
   * Locks those workloads of these subscriptions that have not ended, in the order of their ids. The transaction has
   * locked the subscriptions.
   */
  lockLive(manager: EntityManager, subscriptionIds: readonly string[]): Promise<WorkloadEntity[]> {
    return this.lockWhere(manager, `subscription_id = ANY ($1) AND ${liveWorkload}`, [subscriptionIds]);
  }

  /** Ends workloads that the transaction has locked; that of a pod when its pod is gone. */
  async endAll(manager: EntityManager, rows: readonly WorkloadEntity[], cause: Cause): Promise<void> {
    const [ofPods, others] = [rows.filter(({ podId }) => podId !== null), rows.filter(({ podId }) => podId === null)];
    await this.moveAll(manager, others, 'STOP', cause);
    await this.moveAll(manager, ofPods, 'DRAIN', cause);
  }

  protected override async entered(
    manager: EntityManager,
    workload: WorkloadEntity,
    { event, cause }: Passage<WorkloadState, WorkloadEvent>,
  ): Promise<void> {
    const { workloadId, subscriptionId, teamId } = workload;
    if (workload.state === 'undoing') {
      await manager.query(`UPDATE workload SET failure = last_error->>'message' WHERE workload_id = $1`, [workloadId]);
    }
    const isLeft = ['draining', 'stopping', 'undoing'].includes(workload.state);
    if (isLeft) await withdrawRequest(manager, 'workload', workloadId);
    await this.tellPod(manager, workload);
    if (workload.state !== 'stopped' && workload.state !== 'failed') return;
    // A node that did not give back what was held is looked after before anybody else comes there.
    if (event === 'FAILED') {
      await this.leases.takeOffline(
        manager,
        { of: 'workload_id', ids: [workloadId] },
        nodesLeft(workload),
        workload.lastError?.message ?? 'It did not release its capacity.',
        cause,
      );
    }
    const [pool] = await manager.query<{ pool_id: string }[]>(
      'SELECT pool_id FROM subscription WHERE subscription_id = $1',
      [subscriptionId],
    );
    const { overcommit } = await this.pools.pool(pool?.pool_id ?? '', manager);
    if (overcommit > 1) {
      await this.leases.releaseHeld(manager, { of: 'workload_id', ids: [workloadId] }, cause);
      await this.capacity.note(manager, [teamId]);
    } else {
      await manager.query('UPDATE lease SET workload_id = NULL WHERE workload_id = $1', [workloadId]);
    }
    await touchRows(manager, subscriptionMachine, [subscriptionId], ['draining']);
  }

  /** The pods service ends thousands of pods one after the other: while it does, each of them has its time. */
  private async drain({ workloadId }: WorkloadEntity): Promise<Found> {
    const againAfterMs = await this.podEnds.leftMs(workloadId);
    if (againAfterMs > 0)
      return { againAfterMs, reason: { code: 'draining', message: 'Waiting for its pod to stop.' } };
    const cause = { actor: 'system:gpuaas', reason: 'Its pod did not stop in time.' };
    return this.moving('STOP', cause);
  }

  private async tellPod(
    manager: EntityManager,
    { podId, podStart, state, failure, lastError }: WorkloadEntity,
  ): Promise<void> {
    const status = toldStatus.get(state);
    if (podId === null || podStart === null || status === undefined) return;
    const reason = failure ?? lastError?.message ?? null;
    await this.outbox.add(manager, podWorkloadChanged, { pod_id: podId, start: podStart, status, reason });
  }

  private async occupy(workload: WorkloadEntity, context: StepContext): Promise<Found> {
    const { workloadId, lane } = workload;
    const operation = 'occupy';
    const standings = await standingOf(this.statements, { of: 'workload_id', ids: [workloadId] }, lane, operation);
    const standing = standings.get(workloadId) ?? nothingHeld;
    if (standing.isWaiting) return this.waiting.poll('workload', workloadId);
    const verdict = readiness(standing, workload.vgpus);
    if (verdict) return verdict;
    await noteInstances(
      this.statements,
      await this.troubles.ask({ operation, lane, isTroubled: standing.isTroubled, context }, (signal) =>
        this.driver.occupy(standing.here, signal),
      ),
    );
    return isOnLastNode(workload) ? { event: 'STARTED' } : 'lane done';
  }

  private leasesHere({ workloadId, lane }: WorkloadEntity): Promise<HeldLease[]> {
    return heldBy(this.statements, { of: 'workload_id', ids: [workloadId] }, lane);
  }
}

/** Transitions that the pods service is told about; it knows of those that it requested. */
const toldStatus: ReadonlyMap<string, 'running' | 'stopping' | 'stopped' | 'failed'> = new Map([
  ['running', 'running'],
  ['draining', 'stopping'],
  ['stopped', 'stopped'],
  ['failed', 'failed'],
] as const);
