import { AppError } from '@atoll/errors';
import type { BaremetalHostSpecs, BaremetalRequirements } from '@atoll/contracts/gpuaas';
import { fairShare } from '@atoll/waiting';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';

/** In SQL: whether a node has what a request asks for. The arguments are names of rows. */
function fits(node: string, request: string): string {
  return `(${request}.region_id IS NULL OR ${request}.region_id = ${node}.region_id)
    AND (${request}.gpu_model IS NULL OR lower(${request}.gpu_model) = lower(${node}.gpu_model))
    AND coalesce(${request}.gpu_count, 0) <= ${node}.gpu_count
    AND coalesce(${request}.cpu_cores, 0) <= ${node}.cpu_cores
    AND coalesce(${request}.memory_gb, 0) <= ${node}.memory_gb`;
}

/** In SQL: whether a node may be given to a tenant now. */
function isOffered(node: string): string {
  return `${node}.state = 'available' AND NOT ${node}.is_maintenance AND NOT ${node}.is_retired AND ${node}.unreachable_since IS NULL`;
}

/** In SQL: whether a node may be given to a tenant some day. */
function isInInventory(node: string): string {
  return `${node}.state <> 'removed' AND NOT ${node}.is_retired`;
}

/** In SQL: whether a request waits, and its team may have something new. */
function isWaiting(request: string): string {
  return `(${request}.state = 'requested' AND NOT EXISTS (SELECT FROM team WHERE team.id = ${request}.team_id AND team.is_suspended))`;
}

/** Candidates that are looked at, from the best fit on. */
const candidates = 50;

/** Requests of one team that may wait. */
export const maxRequests = 64;

/**
 * While half as many wait for the same nodes, a team may add to them up to `maxRequests`; beyond that ever less, and
 * one always. Those who come later wait behind some hundreds where a user has filled the queue with 200 teams.
 */
const maxRivals = 256;

/**
 * The free node for a request that this transaction has locked, the one that fits best; locked, and checked again under
 * the lock. None while the team is suspended. One on which the team's last instance failed comes after the others. A
 * node for which an earlier request waits, of whatever team, is left to that. `next`: the first requests that wait for
 * what is left free; where there is no node, the earlier ones.
 */
export async function pickNode(
  manager: EntityManager,
  instanceId: string,
): Promise<{ nodeId?: string; next: string[] }> {
  // Those who wait are read once for each kind of node, of which there are few.
  const rows = await manager.query<{ node_id: string; first: string | null }[]>(
    `WITH candidate AS MATERIALIZED (
       SELECT n.*, n.failures > 0 AND n.failed_team_id IS NOT DISTINCT FROM me.team_id AS has_failed_me
       FROM baremetal_node n, baremetal_instance me
       WHERE me.instance_id = $1 AND ${isWaiting('me')} AND ${isOffered('n')} AND ${fits('n', 'me')}
       ORDER BY has_failed_me, n.gpu_count, n.memory_gb, n.cpu_cores, n.node_id LIMIT ${candidates}
     ), offered AS MATERIALIZED (
       SELECT kind.*, (
         SELECT w.instance_id FROM baremetal_instance w WHERE w.instance_id <> $1 AND ${isWaiting('w')} AND ${fits('kind', 'w')}
         ORDER BY w.instance_id LIMIT 1
       ) AS first
       FROM (SELECT DISTINCT region_id, gpu_model, gpu_count, cpu_cores, memory_gb FROM candidate) kind
     )
     SELECT node_id, first FROM candidate c JOIN offered o ON o.region_id = c.region_id AND o.gpu_model IS NOT DISTINCT FROM c.gpu_model
       AND o.gpu_count = c.gpu_count AND o.cpu_cores = c.cpu_cores AND o.memory_gb = c.memory_gb
     ORDER BY has_failed_me, c.gpu_count, c.memory_gb, c.cpu_cores, node_id`,
    [instanceId],
  );
  const firstOf = (those: typeof rows) => [...new Set(those.flatMap(({ first }) => first ?? []))];
  // Of UUIDs v7 the earlier one is the smaller one.
  const [left, own] = [
    rows.filter(({ first }) => first !== null && first < instanceId),
    rows.filter(({ first }) => first === null || first > instanceId),
  ];
  for (const { node_id } of own) {
    // Whoever has it locked takes it, or changes it.
    const locked = await manager.query<object[]>(
      `SELECT FROM baremetal_node n WHERE node_id = $1 AND ${isOffered('n')} FOR NO KEY UPDATE SKIP LOCKED`,
      [node_id],
    );
    if (locked.length > 0) return { nodeId: node_id, next: firstOf(rows.filter((row) => row.node_id !== node_id)) };
  }
  return { next: firstOf(left) };
}

/** How many requests of the team of this one wait beside it, and whether the team may have no further one. */
async function waitingBeside(
  manager: EntityManager,
  instanceId: string,
): Promise<{ readonly own: number; readonly most: number; readonly isFull: boolean }> {
  const [{ own = 0, rivals = 0, ownRivals = 0 } = {}] = await manager.query<Record<string, number>[]>(
    `WITH me AS MATERIALIZED (SELECT * FROM baremetal_instance WHERE instance_id = $1), kind AS MATERIALIZED (
       SELECT DISTINCT n.region_id, n.gpu_model, n.gpu_count, n.cpu_cores, n.memory_gb FROM me, baremetal_node n
       WHERE ${isInInventory('n')} AND ${fits('n', 'me')}
     ), other AS (
       SELECT w.team_id = me.team_id AS is_own, ${isWaiting('w')} AND EXISTS (SELECT FROM kind WHERE ${fits('kind', 'w')}) AS is_rival
       FROM me, baremetal_instance w WHERE w.state = 'requested' AND w.instance_id <> $1
     )
     SELECT count(*) FILTER (WHERE is_own)::int AS own, count(*) FILTER (WHERE is_rival)::int AS rivals,
       count(*) FILTER (WHERE is_own AND is_rival)::int AS "ownRivals" FROM other`,
    [instanceId],
  );
  const most = Math.max(1, fairShare({ all: maxRivals, free: maxRivals - rivals, most: maxRequests }));
  return ownRivals < most
    ? { own, most: maxRequests, isFull: own >= maxRequests }
    : { own: ownRivals, most, isFull: true };
}

/** Throws `conflict` if too many requests of the team wait beside this one. */
export async function requireRoom(manager: EntityManager, { instanceId }: BaremetalInstanceEntity): Promise<void> {
  const { own, most, isFull } = await waitingBeside(manager, instanceId);
  if (!isFull) return;
  const which = most < maxRequests ? 'for such a host, as many others do' : 'for a host';
  throw new AppError(
    'conflict',
    `${own} ${own === 1 ? 'request' : 'requests'} of the team ${own === 1 ? 'waits' : 'wait'} ${which}; at most ${most} may. Cancel one, or wait until one is served.`,
  );
}

/** Why a request waits; undefined where nothing can match it any more. */
export async function waitingReason(
  manager: EntityManager,
  { instanceId }: BaremetalInstanceEntity,
): Promise<string | undefined> {
  const [found] = await manager.query<{ matching: number; suspended: boolean }[]>(
    `SELECT count(n.node_id)::int AS matching, NOT ${isWaiting('me')} AS suspended
     FROM baremetal_instance me LEFT JOIN baremetal_node n ON ${isInInventory('n')} AND ${fits('n', 'me')}
     WHERE me.instance_id = $1 GROUP BY me.instance_id`,
    [instanceId],
  );
  if (!found || found.matching === 0) return undefined;
  if (found.suspended) return 'The team is suspended: its requests wait.';
  return found.matching === 1
    ? 'The only matching node is not free.'
    : `None of the ${found.matching} matching nodes is free.`;
}

/** The first request that waits for what this node has. */
export async function firstWaitingFor(manager: EntityManager, nodeId: string): Promise<string[]> {
  const rows = await manager.query<{ instance_id: string }[]>(
    `SELECT w.instance_id FROM baremetal_node n, baremetal_instance w
     WHERE n.node_id = $1 AND ${isOffered('n')} AND ${isWaiting('w')} AND ${fits('n', 'w')} ORDER BY w.instance_id LIMIT 1`,
    [nodeId],
  );
  return rows.map(({ instance_id }) => instance_id);
}

/** The requests that wait and that this node, free or not, would fit. */
export async function allWaitingFor(manager: EntityManager, nodeId: string): Promise<string[]> {
  const rows = await manager.query<{ instance_id: string }[]>(
    `SELECT w.instance_id FROM baremetal_node n, baremetal_instance w WHERE n.node_id = $1 AND ${isWaiting('w')} AND ${fits('n', 'w')}`,
    [nodeId],
  );
  return rows.map(({ instance_id }) => instance_id);
}

/** The first of all requests that ask for the same, where a free node fits. Of nodes, the few kinds are looked at. */
export const servableRequests = `
  WITH kind AS MATERIALIZED (
    SELECT DISTINCT region_id, lower(gpu_model) AS gpu_model, gpu_count, cpu_cores, memory_gb FROM baremetal_node n WHERE ${isOffered('n')}
  )
  SELECT instance_id FROM (
    SELECT DISTINCT ON (region_id, gpu_model, gpu_count, cpu_cores, memory_gb) * FROM baremetal_instance w
    WHERE ${isWaiting('w')} ORDER BY region_id, gpu_model, gpu_count, cpu_cores, memory_gb, instance_id
  ) w WHERE EXISTS (SELECT FROM kind WHERE ${fits('kind', 'w')})`;

/** Throws `spec_mismatch` if no node could ever match, and says what the nearest one lacks. */
export async function requireMatch(
  manager: EntityManager,
  specs: BaremetalRequirements,
  regionId?: string,
): Promise<void> {
  const kinds = await manager.query<BaremetalHostSpecs[]>(
    `SELECT DISTINCT gpu_model, gpu_count, cpu_cores, memory_gb FROM baremetal_node n
     WHERE ${isInInventory('n')} AND ($1::bigint IS NULL OR region_id = $1)`,
    [regionId ?? null],
  );
  const lacking = kinds
    .map((kind) => ({ kind, phrases: unmet(specs, kind) }))
    .sort((one, other) => one.phrases.length - other.phrases.length);
  const [nearest] = lacking;
  if (nearest?.phrases.length === 0) return;
  const where = regionId === undefined ? 'The platform' : 'The region';
  if (!nearest) throw new AppError('spec_mismatch', `${where} has no bare-metal nodes.`);
  const { gpu_model, gpu_count, cpu_cores, memory_gb } = nearest.kind;
  const gpus = gpu_model === null ? 'no GPUs' : `${gpu_count} × ${gpu_model}`;
  const cores = `${cpu_cores} ${cpu_cores === 1 ? 'core' : 'cores'}`;
  throw new AppError(
    'spec_mismatch',
    `No node could ever match. The nearest has ${gpus}, ${cores} and ${memory_gb} GB; not met: ${nearest.phrases.join('; ')}.`,
  );
}

/** The requirements that these specs do not meet, each as a phrase. */
function unmet(asked: BaremetalRequirements, specs: BaremetalHostSpecs): string[] {
  const { gpu_model, ...least } = asked;
  const phrases = Object.entries(least)
    .filter(([name, number]) => number !== undefined && number > specs[name as keyof typeof least])
    .map(([name, number]) => `${name} at least ${number} (it has ${specs[name as keyof typeof least]})`);
  if (gpu_model !== undefined && gpu_model.toLowerCase() !== specs.gpu_model?.toLowerCase()) {
    phrases.unshift(`gpu_model ${gpu_model} (it has ${specs.gpu_model ?? 'no GPUs'})`);
  }
  return phrases;
}
