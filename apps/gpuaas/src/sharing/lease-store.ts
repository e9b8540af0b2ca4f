import type { Statements } from '@atoll/database';
import { maskOf } from '@atoll/gpu';
import { touchRows, type MachineRow } from '@atoll/state-machine';
import type { EntityManager } from 'typeorm';
import type { LeasedSlice, InstanceIds } from '../driver/node-driver.js';
import { subscriptionMachine } from '../model/subscription.machine.js';
import { workloadMachine } from '../model/workload.machine.js';
import type { LeaseEntity } from '../model/lease.entity.js';
import type { PlacedOperation } from '../model/node-trouble.entity.js';

/** Bits of what leases hold, from their rows. */
const slotBits = `coalesce((SELECT bit_or(((1::bigint << slot_size) - 1) << slot_start) FROM lease WHERE lease.gpu_id = gpu.gpu_id AND slot_start IS NOT NULL), 0)`;
const turnBits = `coalesce((SELECT bit_or(1::bigint << turn) FROM lease WHERE lease.gpu_id = gpu.gpu_id AND turn IS NOT NULL), 0)`;

/** Whose leases are. `isAdded`: of a subscription that grows, until its nodes have confirmed them. */
export interface LeaseHolder {
  readonly subscriptionId: string;
  readonly workloadId: string | null;
  readonly isAdded: boolean;
}

/** A lease that is not written yet. */
export interface NewLease extends LeaseHolder {
  readonly gpuId: string;
  readonly slotStart: number | null;
  readonly turn: number | null;
  readonly profile: string;
  readonly slotSize: number;
}

/** Writes leases on GPUs that the transaction has locked, and what is used of those: one statement. */
export async function insertLeases(manager: EntityManager, leases: readonly NewLease[]): Promise<void> {
  if (leases.length === 0) return;
  const used = [...Map.groupBy(leases, ({ gpuId }) => gpuId)].map(([gpuId, on]) => ({
    gpuId,
    slots: on.reduce(
      (mask, { slotStart, slotSize }) => (slotStart === null ? mask : mask | maskOf(slotStart, slotSize)),
      0n,
    ),
    turns: on.reduce((mask, { turn }) => (turn === null ? mask : mask | maskOf(turn, 1)), 0n),
  }));
  await manager.query(
    `WITH inserted AS (
       INSERT INTO lease (gpu_id, slot_start, turn, subscription_id, workload_id, profile, slot_size, is_added)
       SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::smallint[], $8::boolean[])
     )
     UPDATE gpu SET slots_used = slots_used | used.slots, turns_used = turns_used | used.turns
     FROM unnest($9::bigint[], $10::bigint[], $11::bigint[]) used (gpu_id, slots, turns) WHERE gpu.gpu_id = used.gpu_id`,
    [
      leases.map(({ gpuId }) => gpuId),
      leases.map(({ slotStart }) => slotStart),
      leases.map(({ turn }) => turn),
      leases.map(({ subscriptionId }) => subscriptionId),
      leases.map(({ workloadId }) => workloadId),
      leases.map(({ profile }) => profile),
      leases.map(({ slotSize }) => slotSize),
      leases.map(({ isAdded }) => isAdded),
      used.map(({ gpuId }) => gpuId),
      used.map(({ slots }) => String(slots)),
      used.map(({ turns }) => String(turns)),
    ],
  );
}

/** Recomputes the used parts of these GPUs, which the transaction has locked, from their leases. */
export async function recount(manager: EntityManager, gpuIds: readonly string[]): Promise<void> {
  await manager.query(`UPDATE gpu SET slots_used = ${slotBits}, turns_used = ${turnBits} WHERE gpu_id = ANY ($1)`, [
    gpuIds,
  ]);
}

/** A lease, and its place on its GPU. */
export type PlacedLease = Pick<LeaseEntity, 'leaseId' | 'gpuId' | 'profile' | 'slotStart' | 'slotSize' | 'turn'>;

/** The leases that hold a place on these GPUs, by GPU, those of each in the order in which they were created. */
export async function leasesOn(
  manager: EntityManager,
  gpuIds: readonly string[],
): Promise<ReadonlyMap<string, PlacedLease[]>> {
  const leases = await manager.query<PlacedLease[]>(
    `SELECT lease_id AS "leaseId", gpu_id AS "gpuId", profile, slot_start AS "slotStart", slot_size AS "slotSize", turn
     FROM lease WHERE gpu_id = ANY ($1::bigint[]) AND lost_reason IS NULL ORDER BY lease_id`,
    [gpuIds],
  );
  return Map.groupBy(leases, ({ gpuId }) => gpuId);
}

/** Gives leases on GPUs that the transaction has locked their places: two statements for any number of them. */
export async function movePlaces(manager: EntityManager, moves: readonly PlacedLease[]): Promise<void> {
  if (moves.length === 0) return;
  await manager.query(
    `UPDATE lease SET slot_start = moved.slot_start, turn = moved.turn
     FROM unnest($1::bigint[], $2::smallint[], $3::smallint[]) moved (lease_id, slot_start, turn)
     WHERE lease.lease_id = moved.lease_id`,
    [moves.map(({ leaseId }) => leaseId), moves.map(({ slotStart }) => slotStart), moves.map(({ turn }) => turn)],
  );
  await recount(manager, [...new Set(moves.map(({ gpuId }) => gpuId))]);
}

/**
 * Takes their places from leases of one GPU that is not where they were to be; whoever asked for them finds the reason.
 */
export async function loseLeases(
  manager: EntityManager,
  gpuId: string,
  leaseIds: readonly string[],
  reason: string,
): Promise<void> {
  if (leaseIds.length === 0) return;
  await manager.query(
    'UPDATE lease SET slot_start = NULL, turn = NULL, lost_reason = $3 WHERE gpu_id = $1 AND lease_id = ANY ($2)',
    [gpuId, leaseIds, reason],
  );
  await recount(manager, [gpuId]);
}

/** Has whoever waits for this GPU look again. */
export async function wakeHolders(manager: EntityManager, gpuId: string): Promise<void> {
  const holders = await manager.query<{ subscription_id: string; workload_id: string | null }[]>(
    `SELECT lease.subscription_id, lease.workload_id FROM lease
     JOIN subscription USING (subscription_id) LEFT JOIN workload USING (workload_id)
     WHERE gpu_id = $1 AND (subscription.state IN ('subscribing', 'growing') OR workload.state = 'pending')`,
    [gpuId],
  );
  if (holders.length === 0) return;
  const [subscriptions, workloads] = [
    holders.map(({ subscription_id }) => subscription_id),
    holders.flatMap(({ workload_id }) => workload_id ?? []),
  ];
  await touchRows(manager, subscriptionMachine, subscriptions, ['subscribing', 'growing']);
  await touchRows(manager, workloadMachine, workloads, ['pending']);
}

/** Stores the MIG instances that a node reported for these leases. */
export async function noteInstances(statements: Statements, ids: InstanceIds): Promise<void> {
  if (ids.size === 0) return;
  await statements.query(
    `UPDATE lease SET gpu_instance_id = told.id FROM unnest($1::bigint[], $2::smallint[]) told (lease_id, id)
     WHERE lease.lease_id = told.lease_id AND gpu_instance_id IS DISTINCT FROM told.id`,
    [[...ids.keys()], [...ids.values()]],
  );
}

export interface HeldLease extends LeasedSlice {
  /** The subscription, or the workload, that was asked about. */
  readonly holderId: string;
  readonly gpuState: string;
}

/** Leases by holder; with `isAdded` only those that a resize adds. */
export interface HeldFilter {
  readonly of: 'subscription_id' | 'workload_id';
  readonly ids: readonly string[];
  readonly isAdded?: boolean;
}

/** In SQL: the condition for these leases; `$1` are its ids. */
export function whereHeld({ of, isAdded = false }: HeldFilter): string {
  return `lease.${of} = ANY ($1::bigint[])${isAdded ? ' AND is_added' : ''}`;
}

/** The leases of subscriptions or workloads. If the lane is a node, only those on this node. */
export async function heldBy(statements: Statements, filter: HeldFilter, lane: string): Promise<HeldLease[]> {
  return statements.query<HeldLease>(
    `SELECT lease.${filter.of} AS "holderId", lease_id AS "leaseId", lease.profile, slot_start AS "slotStart", gpu.state AS "gpuState", gpu.uuid,
       node_name AS "nodeName", gpuaas_id AS "gpuaasId"
     FROM lease JOIN gpu USING (gpu_id) JOIN node USING (node_id)
     WHERE ${whereHeld(filter)} AND ($2::bigint IS NULL OR node_id = $2) ORDER BY lease_id`,
    [filter.ids, isNode(lane) ? lane : null],
  );
}

/** Why a GPU is out of service. */
export interface Outage {
  /** Of the error of the GPU; null: it has none, and its node alone is out of service. */
  readonly code: string | null;
  readonly message: string | null;
  /** Whether its node is initialised again without an operator. */
  readonly isRetried: boolean;
}

/** In SQL, of a GPU that is out of service, and its node: the `Outage`. */
export const outageJson = `json_build_object(
  'code', CASE gpu.state WHEN 'offline' THEN gpu.last_error->>'code' END,
  'message', CASE gpu.state WHEN 'offline' THEN gpu.last_error->>'message' END,
  'isRetried', node.state NOT IN ('registered', 'cordoned_failed'))`;

/** How a holder stands with its leases, all of one instant. */
export interface Standing {
  /** How many it has, lost ones among them. */
  readonly count: number;
  /** Why one of them was lost, if one was. */
  readonly lostReason: string | null;
  /** Whether it waits for some. */
  readonly isWaiting: boolean;
  /** Why a GPU of the lane is out of service; null: none is. */
  readonly outage: Outage | null;
  /** Whether the node of the lane is known to have failed at the operation that was asked about. */
  readonly isTroubled: boolean;
  /** Those of the lane. */
  readonly here: readonly HeldLease[];
}

/**
 * By holder; one without leases, that waits for none, is left out. One statement: between two, leases that were waited
 * for may come, and leases may be lost. `operation`: what the node of the lane is to do.
 */
export async function standingOf(
  statements: Statements,
  filter: HeldFilter,
  lane: string,
  operation: PlacedOperation,
): Promise<Map<string, Standing>> {
  const holder = `lease.${filter.of}`;
  const rows = await statements.query<Standing & { holderId: string }>(
    `SELECT holder_id AS "holderId", coalesce(held.count, 0)::int AS count, lost_reason AS "lostReason", waits.holder_id IS NOT NULL AS "isWaiting",
       outages->0 AS outage, EXISTS (SELECT FROM node_trouble WHERE node_id = $2::bigint AND operation = $3) AS "isTroubled", coalesce(here, '[]') AS here
     FROM (
       SELECT ${holder} AS holder_id, count(*), min(lost_reason) AS lost_reason,
         json_agg(${outageJson} ORDER BY lease_id) FILTER (WHERE gpu.state = 'offline' AND ($2::bigint IS NULL OR node_id = $2)) AS outages,
         json_agg(json_build_object('holderId', ${holder}::text, 'leaseId', lease_id::text, 'profile', lease.profile, 'slotStart', slot_start,
           'gpuState', gpu.state, 'uuid', gpu.uuid, 'nodeName', node_name, 'gpuaasId', gpuaas_id::text) ORDER BY lease_id)
           FILTER (WHERE $2::bigint IS NULL OR node_id = $2) AS here
       FROM lease JOIN gpu USING (gpu_id) JOIN node USING (node_id) WHERE ${whereHeld(filter)} GROUP BY 1
     ) held
     FULL JOIN (
       SELECT ${filter.of} AS holder_id FROM waiting_request
       WHERE ${filter.of} = ANY ($1::bigint[])${filter.of === 'subscription_id' ? ' AND workload_id IS NULL' : ''}
     ) waits USING (holder_id)`,
    [filter.ids, isNode(lane) ? lane : null, operation],
  );
  return new Map(rows.map((row) => [row.holderId, row]));
}

export const nothingHeld: Standing = {
  count: 0,
  lostReason: null,
  isWaiting: false,
  outage: null,
  isTroubled: false,
  here: [],
};

/**
 * In SQL: the lanes of a subscription, or of a workload, are the nodes of its leases, or of those that `which` chooses;
 * without any, it waits with others of its team.
 */
export function lanesOf(of: 'subscription' | 'workload', which = 'true'): string {
  const nodes = `SELECT array_agg(DISTINCT node_id::text) FROM lease JOIN gpu USING (gpu_id) WHERE lease.${of}_id = ${of}.${of}_id AND (${which})`;
  return `coalesce((${nodes}), ARRAY['team:' || team_id])`;
}

/** Whether nothing is left to be done on other nodes. */
export function isOnLastNode({ furtherLanes }: MachineRow): boolean {
  return furtherLanes.length === 0;
}

/** The nodes on which the step of the state that a row is in, or has just left, is not done. */
export function nodesLeft({ lane, furtherLanes }: MachineRow): string[] {
  return [lane, ...furtherLanes].filter(isNode);
}

/** Whether a lane is a node; otherwise its row waits with others of its team. */
export function isNode(lane: string): boolean {
  return /^\d+$/.test(lane);
}
