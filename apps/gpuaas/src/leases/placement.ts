import { AppError } from '@atoll/errors';
import { maskOf, type SliceProfile } from '@atoll/gpu';
import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { NodeDriver } from '../driver/node-driver.js';
import type { GpuEntity } from '../gpus/gpu.entity.js';
import { GpuSteps } from '../gpus/gpu-steps.js';
import type { GpuState } from '../gpus/gpu.machine.js';
import type { KnownPool } from '../pools/pool-catalogue.js';
import { settledStates, soldProfiles, turnsOf } from '../pools/pool-terms.js';
import { insertLeases, recount, type Holder } from './lease-store.js';
import { planLeases, roomByFallback, roomOn, type GpuPlan, type GpuRoom, type PlacingRules } from './plan.js';

/** The first look found too little, or found it locked by others: the second one waits for them. */
class LookAgain extends Error {}

export interface Asked extends Omit<Holder, 'slotSize'> {
  readonly vgpus: number;
  /** Only where it can be used at once: on GPUs that are at rest, and no GPU falls back for it. */
  readonly isForNow?: boolean;
  /** All of it on GPUs of one node. */
  readonly isOnOneNode?: boolean;
}

/** Leases: taken where there is room, given back, and in the same transaction what that does to the modes of their GPUs. */
@Injectable()
export class Placement {
  constructor(
    private readonly gpus: GpuSteps,
    private readonly driver: NodeDriver,
  ) {}

  /**
   * Does the work, in which leases are taken, in a transaction of its own: first by whatever GPUs nobody else is at, and where those do not suffice once
   * more by all, one after the other. So many callers do not stand in a line, and nobody is refused because of another who is.
   */
  async placing<T>(work: (isThorough: boolean) => Promise<T>): Promise<T> {
    try {
      return await work(false);
    } catch (error) {
      if (error instanceof LookAgain) return work(true);
      throw error;
    }
  }

  /** Leases what is asked. Throws `insufficient_capacity`, saying what would fit. */
  async take(manager: EntityManager, pool: KnownPool, asked: Asked, isThorough: boolean, cause: Cause): Promise<void> {
    const { isForNow = false, isOnOneNode = false } = asked;
    // What lies on several nodes shows only among all.
    if (isOnOneNode && asked.vgpus > 1 && !isThorough) throw new LookAgain();
    const rules = { ...this.rulesOf(pool), ...(isForNow && { allowFallback: false }) };
    const profile = rules.sold.find(({ name }) => name === asked.profile);
    if (!profile) throw new Error(`Pool ${pool.poolId} does not sell ${asked.profile}.`);
    const gpus = isThorough ? await this.lockAll(manager, pool, isForNow) : await this.lockFree(manager, pool, profile, asked.vgpus);
    const nodes = isOnOneNode ? [...Map.groupBy(gpus, ({ nodeId }) => nodeId).values()] : [gpus];
    const plans = firstPlan(nodes, profile, asked.vgpus, rules);
    const isPlain = plans?.every(({ fallsBack }) => !fallsBack);
    if (!isThorough && !isPlain) throw new LookAgain();
    if (!plans) throw await this.refusal(manager, pool, asked, rules);
    const byId = new Map(gpus.map((gpu) => [gpu.gpuId, gpu]));
    for (const { gpu } of plans.filter(({ fallsBack }) => fallsBack)) {
      const entity = byId.get(gpu.gpuId);
      if (entity) await this.gpus.fallBack(manager, entity, cause);
    }
    await insertLeases(manager, plans.flatMap(leasesOf), { ...asked, slotSize: profile.size });
  }

  /**
   * Gives back the leases of a subscription, or of a workload of its own leases, or so many of them that are idle; what still runs may return to Spatial. The
   * subscription's, or the workload's, row is locked by the transaction.
   */
  async release(manager: EntityManager, of: 'subscription_id' | 'workload_id', id: string, cause: Cause, idle?: number): Promise<void> {
    // Chosen once: a look after the wait for the GPUs could see others.
    const chosen = await manager.query<{ lease_id: string; gpu_id: string }[]>(
      `SELECT lease_id, gpu_id FROM lease WHERE ${of} = $1 ${idle === undefined ? '' : 'AND workload_id IS NULL'} ORDER BY lease_id DESC LIMIT $2`,
      [id, idle ?? null],
    );
    const gpus = await this.lock(
      manager,
      chosen.map(({ gpu_id }) => gpu_id),
    );
    await manager.query('DELETE FROM lease WHERE lease_id = ANY ($1::bigint[])', [chosen.map(({ lease_id }) => lease_id)]);
    await recount(
      manager,
      gpus.map(({ gpuId }) => gpuId),
    );
    // A GPU that has just failed to return is left alone for a while.
    for (const gpu of gpus) if (gpu.parkedUntil === null) await this.gpus.returnIfFits(manager, gpu, cause);
  }

  /** Takes the GPUs of what these nodes did not give back out of service: they are initialised before anybody else is placed there. */
  async distrust(
    manager: EntityManager,
    of: 'subscription_id' | 'workload_id',
    id: string,
    nodeIds: readonly string[],
    message: string,
    cause: Cause,
  ): Promise<void> {
    for (const gpu of (await this.lockHeld(manager, of, id)).filter(({ nodeId }) => nodeIds.includes(nodeId))) {
      await this.gpus.move(manager, gpu, 'GO_OFFLINE', cause, {}, { code: 'not_given_back', message });
    }
  }

  /** Locks the GPUs of what is held, as everybody does: in the order of their ids. */
  async lockHeld(manager: EntityManager, of: 'subscription_id' | 'workload_id', id: string): Promise<GpuEntity[]> {
    const held = await manager.query<{ gpu_id: string }[]>(`SELECT DISTINCT gpu_id FROM lease WHERE ${of} = $1`, [id]);
    return this.lock(
      manager,
      held.map(({ gpu_id }) => gpu_id),
    );
  }

  private async lock(manager: EntityManager, gpuIds: readonly string[]): Promise<GpuEntity[]> {
    const raw = await manager.query<object[]>('SELECT * FROM gpu WHERE gpu_id = ANY ($1::bigint[]) ORDER BY gpu_id FOR NO KEY UPDATE', [
      gpuIds,
    ]);
    return raw.map((row) => this.gpus.rowOf(row));
  }

  /** How much of each profile these pools have room for now, by pool: on GPUs at rest, and without any of them falling back. One statement for any number of them. */
  async roomsIn(
    query: <Row extends object>(sql: string, values: unknown[]) => Promise<Row[]>,
    pools: readonly KnownPool[],
  ): Promise<Map<string, Map<string, number>>> {
    // GPUs that are used alike are one row. Of replicas one is as good as another, so that their number stands for them.
    const rows = await query<Pick<GpuEntity, 'state' | 'slotsUsed' | 'turnsUsed'> & { poolId: string; gpus: number }>(
      `SELECT pool_id AS "poolId", gpu.state, turns_used AS "turnsUsed", count(*)::int AS gpus,
         CASE mechanism WHEN 'mig' THEN slots_used ELSE (1::bigint << bit_count(slots_used::bit(64))::int) - 1 END AS "slotsUsed"
       FROM gpu JOIN node USING (node_id) JOIN pool USING (pool_id) WHERE pool_id = ANY ($1::bigint[]) AND node.state = 'ready' AND gpu.state = ANY ($2) GROUP BY 1, 2, 3, 5`,
      [pools.map(({ poolId }) => poolId), settledStates],
    );
    const byPool = Map.groupBy(rows, ({ poolId }) => poolId);
    return new Map(
      pools.map((pool) => {
        const rules = this.rulesOf(pool);
        const rooms = (byPool.get(pool.poolId) ?? []).map((row) => ({ room: roomOf({ gpuId: '', ...row }), gpus: row.gpus }));
        const sumOf = (profile: SliceProfile) => rooms.reduce((sum, { room, gpus }) => sum + gpus * roomOn(room, profile, rules), 0);
        return [pool.poolId, new Map(rules.sold.map((profile) => [profile.name, sumOf(profile)]))];
      }),
    );
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

  /** GPUs at rest with room, the fullest first, that no other transaction has locked. */
  private async lockFree(manager: EntityManager, pool: KnownPool, { starts, size }: SliceProfile, vgpus: number): Promise<GpuEntity[]> {
    const isTemporal = pool.sharingMode === 'Temporal';
    const used = isTemporal ? 'turns_used' : 'slots_used';
    // Constants of the profile, written out: quicker for each of many GPUs than a list to go through.
    const hasRoom = starts.map((start) => `${used} & ${maskOf(start, size)} = 0`).join(' OR ');
    const raw = await manager.query<object[]>(
      `SELECT gpu.* FROM gpu JOIN node USING (node_id)
       WHERE pool_id = $1 AND gpu.state = $2 AND node.state = 'ready'
         AND (${hasRoom})
       ORDER BY bit_count((slots_used | turns_used)::bit(64)) DESC, gpu_id LIMIT $3 FOR NO KEY UPDATE OF gpu SKIP LOCKED`,
      [pool.poolId, isTemporal ? 'configured_temporal' : 'spatial', vgpus],
    );
    return raw.map((row) => this.gpus.rowOf(row));
  }

  private async lockAll(manager: EntityManager, pool: KnownPool, isForNow = false): Promise<GpuEntity[]> {
    const raw = await manager.query<object[]>(
      `SELECT gpu.* FROM gpu JOIN node USING (node_id) WHERE pool_id = $1 AND gpu.state NOT IN ('unpooled', 'offline') AND node.state = 'ready'
       ORDER BY gpu_id FOR NO KEY UPDATE OF gpu`,
      [pool.poolId],
    );
    const gpus = raw.map((row) => this.gpus.rowOf(row));
    return isForNow ? gpus.filter(({ state }) => (settledStates as readonly string[]).includes(state)) : gpus;
  }

  private async refusal(
    manager: EntityManager,
    pool: KnownPool,
    { profile, vgpus, isForNow }: Asked,
    rules: PlacingRules,
  ): Promise<AppError> {
    const gpus = (await this.lockAll(manager, pool, isForNow)).map(roomOf);
    const fits = rules.sold
      .map((sold) => {
        const count = gpus.reduce((sum, gpu) => sum + Math.max(roomOn(gpu, sold, rules), roomByFallback(gpu, rules)), 0);
        return { count, text: `${count} of ${sold.name}` };
      })
      .filter(({ count }) => count > 0);
    const would = fits.length > 0 ? `What would fit: ${fits.map(({ text }) => text).join(', or ')}.` : 'Nothing would fit at present.';
    return new AppError(
      'insufficient_capacity',
      `The pool has no room for ${vgpus} ${vgpus === 1 ? 'vGPU' : 'vGPUs'} of ${profile}. ${would}`,
    );
  }
}

/** The first of these groups of GPUs that holds it as it is, or else with GPUs that fall back. */
function firstPlan(groups: readonly GpuEntity[][], profile: SliceProfile, vgpus: number, rules: PlacingRules): GpuPlan[] | null {
  const plans = groups.flatMap((gpus) => {
    const found = planLeases(gpus.map(roomOf), profile, vgpus, rules);
    return found ? [found] : [];
  });
  return plans.find((plan) => plan.every(({ fallsBack }) => !fallsBack)) ?? plans[0] ?? null;
}

function roomOf({ gpuId, state, slotsUsed, turnsUsed }: Pick<GpuEntity, 'gpuId' | 'state' | 'slotsUsed' | 'turnsUsed'>): GpuRoom {
  return { gpuId, state: state as GpuState, slotsUsed: BigInt(slotsUsed), turnsUsed: BigInt(turnsUsed) };
}

function leasesOf({ gpu, places }: GpuPlan): { gpuId: string; slotStart: number | null; turn: number | null }[] {
  return places.map((at) => ({ gpuId: gpu.gpuId, ...at }));
}
