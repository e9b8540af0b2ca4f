import type { Statements } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import { touchRows } from '@atoll/state-machine';
import type { EntityManager } from 'typeorm';
import { subscriptionMachine } from '../model/subscription.machine.js';
import { workloadMachine } from '../model/workload.machine.js';
import type { LeaseHolder } from './lease-store.js';

/** vGPUs that a team requests from a pool. */
export interface PoolRequest {
  readonly teamId: string;
  /** For whom it counts besides the team, as `personOf`; null: nobody. */
  readonly requestedBy: string | null;
  readonly profile: string;
  readonly vgpus: number;
  /** Whether all of it has to be on GPUs of one node. */
  readonly isOnOneNode?: boolean;
  /** What the request takes a part of; if left out, only of the pool. */
  readonly partOf?: Whole;
}

/** A second resource that requests take parts of, besides the pool: the vGPUs of a subscription, for its workloads. */
export interface Whole {
  readonly id: string;
  /**
   * Why the request is not granted, where those before it have just been granted `taken` vGPUs of the same whole;
   * undefined: enough is left.
   */
  refusal(taken: number): AppError | undefined;
}

/** A request that has been accepted and gets its leases later. */
export interface NewRequest extends PoolRequest {
  readonly holder: LeaseHolder;
}

export interface QueuedRequest extends NewRequest {
  readonly waitingId: string;
}

/** Those that wait for leases of a pool, in their order of arrival. */
export async function readQueue(manager: EntityManager, poolId: string): Promise<QueuedRequest[]> {
  const rows = await manager.query<(Omit<QueuedRequest, 'holder'> & LeaseHolder)[]>(
    `SELECT waiting_id AS "waitingId", team_id AS "teamId", requested_by AS "requestedBy", subscription_id AS "subscriptionId", workload_id AS "workloadId", is_added AS "isAdded",
       profile, vgpus, is_on_one_node AS "isOnOneNode"
     FROM waiting_request WHERE pool_id = $1 AND refusal IS NULL ORDER BY waiting_id`,
    [poolId],
  );
  return rows.map(({ subscriptionId, workloadId, isAdded, ...request }) => ({
    ...request,
    holder: { subscriptionId, workloadId, isAdded },
  }));
}

/** Adds requests at the end of the queue of a pool. */
export async function enqueue(manager: EntityManager, poolId: string, requests: readonly NewRequest[]): Promise<void> {
  for (const { teamId, requestedBy, profile, vgpus, isOnOneNode = false, holder } of requests) {
    await manager.query(
      `INSERT INTO waiting_request (pool_id, team_id, requested_by, subscription_id, workload_id, is_added, profile, vgpus, is_on_one_node)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        poolId,
        teamId,
        requestedBy,
        holder.subscriptionId,
        holder.workloadId,
        holder.isAdded,
        profile,
        vgpus,
        isOnOneNode,
      ],
    );
  }
}

/** Takes a request out of its queue; false where it was withdrawn meanwhile. */
export async function takeFromQueue(manager: EntityManager, { waitingId }: QueuedRequest): Promise<boolean> {
  const [, count] = await manager.query<[unknown, number]>('DELETE FROM waiting_request WHERE waiting_id = $1', [
    waitingId,
  ]);
  return count > 0;
}

/** Marks a request that will get no leases; whoever made it takes note, and withdraws it. */
export async function refuseRequest(manager: EntityManager, request: QueuedRequest, refusal: string): Promise<void> {
  await manager.query('UPDATE waiting_request SET refusal = $2 WHERE waiting_id = $1', [request.waitingId, refusal]);
  await wakeRequest(manager, request);
}

/** Has a worker look at the row that waits. */
export async function wakeRequest(manager: EntityManager, { holder }: Pick<QueuedRequest, 'holder'>): Promise<void> {
  if (holder.workloadId === null) await touchRows(manager, subscriptionMachine, [holder.subscriptionId]);
  else await touchRows(manager, workloadMachine, [holder.workloadId]);
}

/**
 * In SQL: whether a request waits for this pool. Written as a range, and sorted by `inTurn`, so that PostgreSQL reads
 * the index of pools. Where most requests wait for one pool, it expects as many for any, and for `=` it would look for
 * the first of another pool through the requests of all.
 */
export const isQueuedFor = (pool: `$${number}` | `${string}.pool_id`, row = 'waiting_request'): string =>
  `${row}.pool_id BETWEEN ${pool} AND ${pool}`;
const inTurn = 'pool_id, waiting_id';

/** Has the first that waits for a pool look for room, for itself and for all behind it. */
export async function wakeQueue(manager: EntityManager, poolId: string): Promise<void> {
  const [holder] = await manager.query<LeaseHolder[]>(
    `SELECT subscription_id AS "subscriptionId", workload_id AS "workloadId", is_added AS "isAdded" FROM waiting_request
     WHERE ${isQueuedFor('$1')} AND refusal IS NULL ORDER BY ${inTurn} LIMIT 1`,
    [poolId],
  );
  if (holder) await wakeRequest(manager, { holder });
}

/** A subscription, or a workload, does not wait any more. Its row is locked by the transaction. */
export async function withdrawRequest(manager: EntityManager, of: RequestKey, id: string): Promise<void> {
  const [gone] = await manager.query<[{ pool_id: string }[], number]>(
    `DELETE FROM waiting_request WHERE ${keys[of]} RETURNING pool_id`,
    [id],
  );
  for (const { pool_id } of gone) await wakeQueue(manager, pool_id);
}

export type RequestKey = 'subscription' | 'workload';
const keys = { subscription: 'subscription_id = $1 AND workload_id IS NULL', workload: 'workload_id = $1' } as const;

export interface OwnRequest {
  readonly poolId: string;
  /** Why it will get no leases. */
  readonly refusal: string | null;
  readonly isFirst: boolean;
}

/** What a subscription, or a workload, waits for; undefined: for nothing. */
export async function requestOf(
  statements: Pick<Statements, 'query'>,
  of: RequestKey,
  id: string,
): Promise<OwnRequest | undefined> {
  const [request] = await statements.query<OwnRequest>(
    `SELECT pool_id AS "poolId", refusal, coalesce((
       SELECT waiting_id FROM waiting_request first WHERE ${isQueuedFor('request.pool_id', 'first')} AND refusal IS NULL ORDER BY ${inTurn} LIMIT 1
     ) >= waiting_id, true) AS "isFirst" FROM waiting_request request WHERE ${keys[of]}`,
    [id],
  );
  return request;
}
