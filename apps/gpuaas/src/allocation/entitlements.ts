import { Statements, Transactions } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import { room } from '@atoll/gpu';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockPool } from './allocation.js';
import { waitsForGpu, waitsForOutage, type StillWaiting } from './readiness.js';
import { capacityRefusal } from './refusal.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { outageJson, type Outage } from '../sharing/lease-store.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import { soldProfiles } from '../sharing/pool-terms.js';
import type { PoolRequest } from '../sharing/waiting-requests.js';
import { liveSubscription } from '../model/subscription.machine.js';

const lookAgainMs = 1_000;
/** Of those that wait in a pool. So many look again after a second, as many after two: each look reads the pool. */
const looksAtOnce = 16;
const latestLookMs = 30_000;

/** In SQL: what a subscription is entitled to, or is about to be. */
const entitled = `GREATEST(vgpus, CASE WHEN state IN ('growing', 'reverting') THEN resize_vgpus ELSE 0 END)`;

/** In SQL: GPUs whose slices are sold, though some are still being prepared; */
const isSold = `node.state = 'ready' AND gpu.state <> 'offline'`;
/** those of them that have been prepared, and carry what is granted; */
const isInService = `${isSold} AND gpu.state <> 'preparing'`;
/** and all that are in service, or come into it by themselves. */
const isExpected = `NOT node.is_cordoned AND node.state <> 'registered'`;

/** What a subscription gets of a pool. */
export interface Entitled {
  /** What it waits for before it can be granted; null: nothing. */
  readonly reason: StillWaiting['reason'] | null;
}

/**
 * What is sold of a pool with overcommit: slices × overcommit in all. Where it sells several profiles, a subscription
 * takes the part of a GPU that one slice of its profile is, 1 / (slices of the profile that fit on a GPU): counted in
 * parts so small that each is a whole number of them.
 */
@Injectable()
export class Entitlements {
  constructor(
    private readonly statements: Statements,
    private readonly gpus: GpuSteps,
    private readonly transactions: Transactions,
  ) {}

  /**
   * Decides on entitlements in their order, as if each came when the one before it was granted; the transaction holds
   * the lock of the pool from here on. What is refused comes back as an AppError `insufficient_capacity` that says what
   * would be accepted.
   */
  async decide(
    manager: EntityManager,
    pool: KnownPool,
    all: readonly Pick<PoolRequest, 'profile' | 'vgpus'>[],
  ): Promise<(Entitled | AppError)[]> {
    await lockPool(manager, pool);
    const parts = partsOf(pool);
    const [{ sold = 0, inService = 0 } = {}] = await manager.query<{ sold: number; inService: number }[]>(
      `SELECT count(*) FILTER (WHERE ${isSold})::int AS sold, count(*) FILTER (WHERE ${isInService})::int AS "inService"
       FROM gpu JOIN node USING (node_id) WHERE pool_id = $1`,
      [pool.poolId],
    );
    const held = await manager.query<{ profile: string; vgpus: number }[]>(
      `SELECT profile, sum(${entitled})::int AS vgpus FROM subscription WHERE pool_id = $1 AND ${liveSubscription} GROUP BY profile`,
      [pool.poolId],
    );
    let used = held.reduce((sum, { profile, vgpus }) => sum + vgpus * (parts.of.get(profile) ?? 0), 0);
    return all.map((wanted) => {
      const needed = wanted.vgpus * (parts.of.get(wanted.profile) ?? 0);
      const free = sold * parts.perGpu - used;
      if (needed > free) return capacityRefusal(pool, wanted, { fits: fitsOf(parts.of, free) });
      used += needed;
      return { reason: used > inService * parts.perGpu ? waitsForGpu : null };
    });
  }

  /**
   * For the steps of subscriptions to these pools, which are `subscribing` or `growing`: what each that is to be
   * entitled waits for, by id; those that may be granted, and all without overcommit, are left out. They are granted in
   * the order of their arrival, so that two looks at once never count on the same capacity. Begins the GPUs that are
   * waited for. Throws `StepFailed` where there will be no capacity for one of them.
   */
  async stillWaiting(
    pools: readonly KnownPool[],
    subscriptionIds: readonly string[],
  ): Promise<Map<string, StillWaiting>> {
    const waiting = new Map<string, StillWaiting>();
    const entitling = pools.filter(({ overcommit }) => overcommit > 1);
    if (entitling.length === 0) return waiting;
    for (const standing of await this.standingsOf(entitling)) {
      if (standing.used <= standing.inService * standing.parts.perGpu) continue;
      const { found, missing } = await this.waitingOf(standing, new Set(subscriptionIds));
      if (missing > 0) await this.begin(standing.pool, missing);
      for (const [id, stillWaiting] of found) waiting.set(id, stillWaiting);
    }
    return waiting;
  }

  /** How many more of each profile could be sold now, by pool. One statement for any number of pools. */
  async available(pools: readonly KnownPool[]): Promise<Map<string, Map<string, number>>> {
    const standings = await this.standingsOf(pools);
    return new Map(
      standings.map(({ pool, parts, inService, used }) => {
        const fits = fitsOf(parts.of, inService * parts.perGpu - used);
        return [pool.poolId, new Map(fits.map(({ profile, count }) => [profile, count]))];
      }),
    );
  }

  private async standingsOf(pools: readonly KnownPool[]): Promise<PoolStanding[]> {
    const rows = await this.statements.query<
      Omit<PoolStanding, 'pool' | 'parts' | 'used'> & { poolId: string; held: object | null }
    >(
      `SELECT asked.pool_id AS "poolId", coalesce(in_service, 0) AS "inService", coalesce(sold, 0) AS sold, coalesce(expected, 0) AS expected, outages->0 AS outage, held
       FROM unnest($1::bigint[]) asked (pool_id)
       LEFT JOIN (
         SELECT pool_id, count(*) FILTER (WHERE ${isInService})::int AS in_service, count(*) FILTER (WHERE ${isSold})::int AS sold,
           count(*) FILTER (WHERE ${isExpected})::int AS expected,
           json_agg(${outageJson} ORDER BY gpu.state <> 'offline', gpu_id) FILTER (WHERE ${isExpected} AND NOT (${isSold})) AS outages
         FROM gpu JOIN node USING (node_id) WHERE pool_id = ANY ($1::bigint[]) GROUP BY pool_id
       ) counted USING (pool_id)
       LEFT JOIN (
         SELECT pool_id, json_object_agg(profile, vgpus) AS held FROM (
           SELECT pool_id, profile, sum(${entitled})::int AS vgpus FROM subscription WHERE pool_id = ANY ($1::bigint[]) AND ${liveSubscription} GROUP BY 1, 2
         ) live GROUP BY pool_id
       ) subscribed USING (pool_id)`,
      [pools.map(({ poolId }) => poolId)],
    );
    const byPool = new Map(rows.map((row) => [row.poolId, row]));
    return pools.map((pool) => {
      const parts = partsOf(pool);
      const { inService = 0, sold = 0, expected = 0, outage = null, held = null } = byPool.get(pool.poolId) ?? {};
      const used = Object.entries(held ?? {}).reduce(
        (sum, [profile, vgpus]) => sum + vgpus * (parts.of.get(profile) ?? 0),
        0,
      );
      return { pool, parts, inService, sold, expected, outage, used };
    });
  }

  /**
   * What each of these subscriptions that cannot be granted yet waits for, by id, and how many GPUs have to come into
   * service for the last of them. Throws `StepFailed` where one would have no place then either.
   */
  private async waitingOf(
    { pool, parts, inService, sold, expected, outage }: PoolStanding,
    subscriptionIds: ReadonlySet<string>,
  ): Promise<{ found: Map<string, StillWaiting>; missing: number }> {
    const rows = await this.statements.query<{ id: string | null; profile: string; granted: number; asked: number }>(
      `SELECT CASE WHEN state IN ('subscribing', 'growing') THEN subscription_id END AS id, profile,
         sum(CASE WHEN state IN ('subscribing', 'undoing') THEN 0 ELSE vgpus END)::int AS granted,
         sum(CASE state WHEN 'subscribing' THEN vgpus WHEN 'growing' THEN resize_vgpus - vgpus ELSE 0 END)::int AS asked
       FROM subscription WHERE pool_id = $1 AND ${liveSubscription} GROUP BY 1, 2 ORDER BY min(entered_at), 1`,
      [pool.poolId],
    );
    const partOf = (profile: string) => parts.of.get(profile) ?? 0;
    let used = rows.reduce((sum, { profile, granted }) => sum + granted * partOf(profile), 0);
    const found = new Map<string, StillWaiting>();
    let [ahead, missing] = [0, 0];
    for (const { id, profile, asked } of rows) {
      const needed = asked * partOf(profile);
      const isOurs = id !== null && subscriptionIds.has(id);
      if (used + needed > expected * parts.perGpu) {
        const fits = fitsOf(parts.of, inService * parts.perGpu - used);
        const { code, message } = capacityRefusal(pool, { profile, vgpus: asked }, { fits });
        if (isOurs) throw new StepFailed(code, message, true);
        continue;
      }
      used += needed;
      if (id === null || used <= inService * parts.perGpu) continue;
      const againAfterMs = Math.min(latestLookMs, lookAgainMs * (1 + Math.floor(ahead / looksAtOnce)));
      ahead += 1;
      if (!isOurs) continue;
      const reason = outage && used > sold * parts.perGpu ? waitsForOutage(outage) : waitsForGpu;
      found.set(id, { againAfterMs, reason });
      missing = Math.ceil(used / parts.perGpu) - inService;
    }
    return { found, missing };
  }

  /** Begins so many GPUs of a pool, beside those that are waited for already. */
  private async begin({ poolId }: KnownPool, count: number): Promise<void> {
    const rows = await this.statements.query<{ gpu_id: string }>(
      `SELECT gpu_id FROM (
         SELECT gpu_id, gpu.deadline_at FROM gpu JOIN node USING (node_id) WHERE pool_id = $1 AND ${isSold} AND gpu.state = 'preparing'
         ORDER BY gpu.deadline_at, gpu_id LIMIT $2
       ) awaited WHERE deadline_at IS NULL`,
      [poolId, count],
    );
    if (rows.length === 0) return;
    const gpuIds = rows.map(({ gpu_id }) => gpu_id);
    await this.transactions.run((manager) => this.gpus.beginNow(manager, gpuIds));
  }
}

interface PoolStanding {
  readonly pool: KnownPool;
  readonly parts: Parts;
  /** GPUs in service; with those being prepared; and with all others that come into service by themselves. */
  readonly inService: number;
  readonly sold: number;
  readonly expected: number;
  /** Of the first of `expected` that is not among `sold`; null: there is none. */
  readonly outage: Outage | null;
  /** Parts that subscriptions take. */
  readonly used: number;
}

interface Parts {
  /** Of one GPU, whose slices are sold `overcommit` times. */
  readonly perGpu: number;
  /** That one slice of a profile takes, by profile. */
  readonly of: ReadonlyMap<string, number>;
}

function partsOf(pool: KnownPool): Parts {
  const counts = soldProfiles(pool).map((profile) => ({ name: profile.name, count: room(profile, 0n) }));
  const whole = counts.reduce((multiple, { count }) => leastCommonMultiple(multiple, count), 1);
  return { perGpu: whole * pool.overcommit, of: new Map(counts.map(({ name, count }) => [name, whole / count])) };
}

function leastCommonMultiple(one: number, other: number): number {
  return (one * other) / greatestCommonDivisor(one, other);
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}

function fitsOf(parts: ReadonlyMap<string, number>, free: number): { profile: string; count: number }[] {
  return [...parts].map(([profile, part]) => ({ profile, count: Math.max(0, Math.floor(free / part)) }));
}
