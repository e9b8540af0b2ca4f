import { Statements } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import { maskOf, type SliceProfile } from '@atoll/gpu';
import type { Cause, MachineError } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { NodeDriver } from '../driver/node-driver.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import type { GpuEntity } from '../model/gpu.entity.js';
import type { GpuState } from '../model/gpu.machine.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import { settledStates, soldProfiles, turnsOf } from '../sharing/pool-terms.js';
import { scheduleInTurn, type Decision, type Wanted } from './scheduling.js';
import { isAvoided } from '../sharing/node-troubles.js';
import { insertLeases, type LeaseHolder, type NewLease } from '../sharing/lease-store.js';
import { roomOn, type GpuPlan, type GpuRoom, type PlacingRules } from '../sharing/plan.js';
import { waitsForGpu } from './readiness.js';
import { capacityRefusal } from './refusal.js';
import {
  enqueue,
  isQueuedFor,
  readQueue,
  refuseRequest,
  takeFromQueue,
  wakeQueue,
  wakeRequest,
  type PoolRequest,
  type NewRequest,
  type QueuedRequest,
} from '../sharing/waiting-requests.js';

/** What this transaction may now carry out: the GPUs of the leases are locked. */
export interface Admission {
  readonly request: PoolRequest;
  readonly decision: Exclude<Decision, { kind: 'refuse' | 'exceed' }>;
  readonly gpus: ReadonlyMap<string, GpuEntity>;
  /** What it waits for before it can be used; null: nothing. */
  readonly reason: Omit<MachineError, 'at'> | null;
}

/** Decisions, and the GPUs they need, locked. */
interface Found {
  readonly decisions: readonly Decision[];
  readonly gpus: ReadonlyMap<string, GpuEntity>;
}

type GpuColumns = Pick<GpuEntity, 'gpuId' | 'nodeId' | 'state' | 'slotsUsed' | 'turnsUsed'> &
  Pick<GpuRoom, 'isAvoided' | 'stayedAt'>;

const gpuColumns = `gpu_id AS "gpuId", node_id AS "nodeId", gpu.state, slots_used AS "slotsUsed", turns_used AS "turnsUsed", ${isAvoided} AS "isAvoided"`;

/** In SQL: `GpuRoom.stayedAt`. Nothing else leaves an error in this state. */
const stayedAt = `CASE WHEN gpu.state = 'spatial' AND gpu.last_error IS NOT NULL THEN gpu.entered_at END`;

/** Decides which requests get leases of a pool, which wait, and which are refused; and writes what was decided. */
@Injectable()
export class Allocation {
  constructor(
    private readonly statements: Statements,
    private readonly gpus: GpuSteps,
    private readonly driver: NodeDriver,
  ) {}

  /**
   * Decides on requests in their order, as if each came when the one before it had its leases. The transaction holds
   * the lock of the pool from here on: `hold` carries out what was decided. What is refused comes back as an AppError
   * `insufficient_capacity` that says what would be accepted, or as the error of the whole that it takes too much of.
   * `leaving` are the ids of GPUs that the transaction locks afterwards: since all lock theirs in one order, they are
   * locked with those of the leases.
   */
  async decide(
    manager: EntityManager,
    pool: KnownPool,
    all: readonly PoolRequest[],
    leaving: readonly string[] = [],
  ): Promise<(Admission | AppError)[]> {
    await lockPool(manager, pool);
    const rules = this.rulesOf(pool);
    const wanted = all.map((request) => wantedOf(request, rules));
    const { decisions, gpus } =
      (await this.lookAtRest(manager, pool, wanted, rules, leaving)) ??
      (await this.lookAtAll(
        manager,
        pool,
        (gpus, queue) =>
          scheduleInTurn({ gpus, waiting: queue.map((request) => wantedOf(request, rules)) }, wanted, rules),
        leaving,
      ));
    return all.map((request, at) => {
      const decision = decisions[at];
      if (!decision) throw new Error('A request got no decision.');
      if (decision.kind === 'refuse') return capacityRefusal(pool, request, decision);
      if (decision.kind === 'exceed') return decision.refusal;
      return { request, decision, gpus, reason: isForLater(decision) ? waitsForGpu : null };
    });
  }

  /** Writes leases and waiting requests as `decide` has decided, in the same transaction. */
  async hold(
    manager: EntityManager,
    pool: KnownPool,
    all: readonly { readonly admission: Admission; readonly holder: LeaseHolder; readonly cause: Cause }[],
  ): Promise<void> {
    const rules = this.rulesOf(pool);
    const leases: NewLease[] = [];
    const waiting: NewRequest[] = [];
    for (const {
      admission: { request, decision, gpus },
      holder,
      cause,
    } of all) {
      if (decision.kind === 'wait') waiting.push({ ...request, holder });
      else {
        await this.fallBack(manager, decision.plans, gpus, leases, cause);
        leases.push(...leasesOf(decision.plans, request.profile, wantedOf(request, rules).profile.size, holder));
      }
    }
    await insertLeases(manager, leases);
    await enqueue(manager, pool.poolId, waiting);
  }

  /**
   * Gives leases to those that wait for a pool, in their order, as far as there is room by now, and marks those that
   * will get none. Returns the teams that got some.
   */
  async serveQueue(manager: EntityManager, pool: KnownPool, cause: Cause): Promise<Set<string>> {
    await lockPool(manager, pool);
    const rules = this.rulesOf(pool);
    const served = new Set<string>();
    let queue: readonly QueuedRequest[] = [];
    const { decisions, gpus } = await this.lookAtAll(manager, pool, (found, requests) => {
      queue = requests;
      return scheduleInTurn(
        { gpus: found, waiting: [] },
        requests.map((request) => ({ ...wantedOf(request, rules), isQueued: true })),
        rules,
      );
    });
    for (const [at, request] of queue.entries()) {
      const decision = decisions[at];
      if (decision?.kind === 'refuse')
        await refuseRequest(manager, request, capacityRefusal(pool, request, decision).message);
      if (decision?.kind !== 'lease') continue;
      // What was planned for those behind one that was withdrawn meanwhile counts on what that one would have changed:
      // they are looked at anew.
      if (!(await takeFromQueue(manager, request))) {
        await wakeQueue(manager, pool.poolId);
        break;
      }
      const admission = { request, decision, gpus, reason: null };
      await this.hold(manager, pool, [{ admission, holder: request.holder, cause }]);
      await wakeRequest(manager, request);
      served.add(request.teamId);
    }
    await this.hasten(manager, decisions);
    return served;
  }

  /** Begins the GPUs that requests wait for, and that have no leases which would have begun them. */
  private async hasten(manager: EntityManager, decisions: readonly Decision[]): Promise<void> {
    const awaited = decisions.flatMap((decision) => (decision.kind === 'wait' ? decision.later : []));
    await this.gpus.beginNow(
      manager,
      awaited.map(({ gpu }) => gpu.gpuId),
    );
  }

  /**
   * How much of each profile these pools have room for now, by pool: on GPUs at rest, and without any of them falling
   * back. One statement for any number of them.
   */
  async roomsIn(pools: readonly KnownPool[]): Promise<Map<string, Map<string, number>>> {
    // GPUs that are used alike are one row. Of replicas one is as good as another, so that their number stands for
    // them.
    const rows = await this.statements.query<
      Pick<GpuEntity, 'state' | 'slotsUsed' | 'turnsUsed'> & { poolId: string; gpus: number }
    >(
      `SELECT pool_id AS "poolId", gpu.state, turns_used AS "turnsUsed", count(*)::int AS gpus,
         CASE mechanism WHEN 'mig' THEN slots_used ELSE (1::bigint << bit_count(slots_used::bit(64))::int) - 1 END AS "slotsUsed"
       FROM gpu JOIN node USING (node_id) JOIN pool USING (pool_id) WHERE pool_id = ANY ($1::bigint[]) AND node.state = 'ready' AND gpu.state = ANY ($2) GROUP BY 1, 2, 3, 5`,
      [pools.map(({ poolId }) => poolId), settledStates],
    );
    const byPool = Map.groupBy(rows, ({ poolId }) => poolId);
    return new Map(
      pools.map((pool) => {
        const rules = this.rulesOf(pool);
        const rooms = (byPool.get(pool.poolId) ?? []).map((row) => ({
          room: roomOf({ gpuId: '', nodeId: '', ...row }),
          gpus: row.gpus,
        }));
        const sumOf = (profile: SliceProfile) =>
          rooms.reduce((sum, { room, gpus }) => sum + gpus * roomOn(room, profile, rules), 0);
        return [pool.poolId, new Map(rules.sold.map((profile) => [profile.name, sumOf(profile)]))];
      }),
    );
  }

  /** Where GPUs at rest, of nodes that have not failed of late, have room for all of it, and nothing waits. */
  private async lookAtRest(
    manager: EntityManager,
    pool: KnownPool,
    wanted: readonly Wanted[],
    rules: PlacingRules,
    leaving: readonly string[],
  ): Promise<Found | undefined> {
    const used = rules.isTemporal ? 'turns_used' : 'slots_used';
    // Constants of the profiles, written out: quicker for each of many GPUs than a list to go through.
    const masks = new Set(
      wanted.flatMap(({ profile: { starts, size } }) => starts.map((start) => maskOf(start, size))),
    );
    const rows = await manager.query<(GpuColumns & { has_queue: boolean })[]>(
      `SELECT ${gpuColumns}, EXISTS (SELECT FROM waiting_request WHERE ${isQueuedFor('$1')}) AS has_queue
       FROM gpu JOIN node USING (node_id)
       WHERE pool_id = $1 AND gpu.state = $2 AND node.state = 'ready' AND NOT ${isAvoided} AND (${[...masks].map((mask) => `${used} & ${mask} = 0`).join(' OR ')})
       ORDER BY bit_count(${used}::bit(64)) DESC, gpu_id LIMIT $3`,
      [
        pool.poolId,
        rules.isTemporal ? 'configured_temporal' : 'spatial',
        wanted.reduce((sum, { vgpus }) => sum + vgpus, 0),
      ],
    );
    if (rows.length === 0 || rows[0]?.has_queue) return undefined;
    const decisions = await scheduleInTurn({ gpus: rows.map(roomOf), waiting: [] }, wanted, rules);
    const isPlain = (decision: Decision) =>
      decision.kind === 'lease' && decision.plans.every(({ fallsBack }) => !fallsBack);
    const isAtRest = decisions.every((decision) => decision.kind === 'exceed' || isPlain(decision));
    return isAtRest ? this.lockPlanned(manager, rows, decisions, leaving) : undefined;
  }

  /** At all GPUs of the pool. Those that are needed are locked; where one has changed meanwhile, once more. */
  private async lookAtAll(
    manager: EntityManager,
    pool: KnownPool,
    decideOn: (gpus: readonly GpuRoom[], queue: readonly QueuedRequest[]) => Promise<readonly Decision[]>,
    leaving: readonly string[] = [],
  ): Promise<Found> {
    const queue = await readQueue(manager, pool.poolId);
    for (const lock of ['', '', 'FOR NO KEY UPDATE OF gpu'] as const) {
      const rows = await manager.query<GpuColumns[]>(
        `SELECT ${gpuColumns}, ${stayedAt} AS "stayedAt" FROM gpu JOIN node USING (node_id)
         WHERE pool_id = $1 AND gpu.state NOT IN ('unpooled', 'offline') AND node.state = 'ready' ORDER BY gpu_id ${lock}`,
        [pool.poolId],
      );
      const found = await this.lockPlanned(manager, rows, await decideOn(rows.map(roomOf), queue), leaving);
      if (found) return found;
    }
    throw new Error(`GPUs of pool ${pool.poolId} changed while they were locked.`);
  }

  /**
   * The GPUs of these plans, and those where something is given back, locked in the order of their ids as every
   * transaction does; undefined, and none is locked, where one of them has changed.
   */
  private async lockPlanned(
    manager: EntityManager,
    rows: readonly GpuColumns[],
    decisions: readonly Decision[],
    leaving: readonly string[],
  ): Promise<Found | undefined> {
    const ids = new Set(
      decisions.flatMap((decision) => (decision.kind === 'lease' ? decision.plans.map(({ gpu }) => gpu.gpuId) : [])),
    );
    if (ids.size === 0) return { decisions, gpus: new Map() };
    await manager.query('SAVEPOINT look');
    const locked = await this.gpus.lockAll(manager, [...ids, ...leaving]);
    const gpus = new Map(locked.map((gpu) => [gpu.gpuId, gpu]));
    const isAsRead = rows.every((row) => !ids.has(row.gpuId) || isSame(row, gpus.get(row.gpuId)));
    if (isAsRead) return { decisions, gpus };
    await manager.query('ROLLBACK TO SAVEPOINT look');
    return undefined;
  }

  /** What was planned before on a GPU that falls back is written first, so that it has a turn as all that is there. */
  private async fallBack(
    manager: EntityManager,
    plans: readonly GpuPlan[],
    gpus: ReadonlyMap<string, GpuEntity>,
    before: NewLease[],
    cause: Cause,
  ): Promise<void> {
    const falling = plans.flatMap(({ fallsBack, gpu }) => (fallsBack ? (gpus.get(gpu.gpuId) ?? []) : []));
    if (falling.length === 0) return;
    await insertLeases(manager, before.splice(0));
    await this.gpus.fallBackAll(manager, falling, cause);
  }

  private rulesOf(pool: KnownPool): PlacingRules {
    return {
      isTemporal: pool.sharingMode === 'Temporal',
      turns: turnsOf(pool),
      allowFallback: pool.allowFallback,
      canSwitchUnderTenants: this.driver.canSwitchUnderTenants(pool.mechanism),
      sold: soldProfiles(pool),
    };
  }
}

/** Whoever allocates of one pool does so one after the other. */
export async function lockPool(manager: EntityManager, { poolId }: KnownPool): Promise<void> {
  await manager.query('SELECT FROM pool WHERE pool_id = $1 FOR NO KEY UPDATE', [poolId]);
}

function wantedOf(
  { teamId, requestedBy, profile, vgpus, isOnOneNode = false, partOf }: PoolRequest,
  { sold }: PlacingRules,
): Wanted {
  const found = sold.find(({ name }) => name === profile);
  if (!found) throw new Error(`The pool does not sell ${profile}.`);
  return { teamId, requestedBy, profile: found, vgpus, isOnOneNode, partOf };
}

function roomOf({ state, slotsUsed, turnsUsed, ...rest }: GpuColumns): GpuRoom {
  return { ...rest, state: state as GpuState, slotsUsed: BigInt(slotsUsed), turnsUsed: BigInt(turnsUsed) };
}

function isSame(one: GpuColumns, other: GpuColumns | undefined): boolean {
  return one.state === other?.state && one.slotsUsed === other.slotsUsed && one.turnsUsed === other.turnsUsed;
}

/** Whether a GPU has to switch, or to be prepared, before it can be used. */
function isForLater(decision: Admission['decision']): boolean {
  return (
    decision.kind === 'wait' ||
    decision.plans.some(({ fallsBack, gpu }) => fallsBack || !settledStates.includes(gpu.state))
  );
}

function leasesOf(plans: readonly GpuPlan[], profile: string, slotSize: number, holder: LeaseHolder): NewLease[] {
  return plans.flatMap(({ gpu: { gpuId }, places }) =>
    places.map((place) => ({ gpuId, ...place, ...holder, profile, slotSize })),
  );
}
