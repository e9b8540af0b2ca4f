import type { AppError } from '@atoll/errors';
import { room } from '@atoll/gpu';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockPool } from './allocation.js';
import { capacityRefusal } from './refusal.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import { soldProfiles } from '../sharing/pool-terms.js';
import { liveSubscription } from '../model/subscription.machine.js';

interface Wanted {
  readonly profile: string;
  readonly vgpus: number;
}

/** In SQL: what a subscription is entitled to, or is about to be. */
const entitled = `GREATEST(vgpus, CASE WHEN state IN ('growing', 'reverting') THEN resize_vgpus ELSE 0 END)`;

/**
 * What is sold of a pool with overcommit: slices × overcommit in all. Where it sells several profiles, a subscription
 * takes the part of a GPU that one slice of its profile is, 1 / (slices of the profile that fit on a GPU): counted in
 * parts so small that each is a whole number of them.
 */
@Injectable()
export class Entitlements {
  /**
   * Decides on entitlements in their order, as if each came when the one before it was granted; the transaction holds
   * the lock of the pool from here on. undefined: it may be granted; otherwise an AppError `insufficient_capacity` that
   * says what would be accepted.
   */
  async decide(manager: EntityManager, pool: KnownPool, all: readonly Wanted[]): Promise<(AppError | undefined)[]> {
    await lockPool(manager, pool);
    const parts = partsOf(pool);
    const [{ gpus = 0 } = {}] = await manager.query<{ gpus: number }[]>(
      `SELECT count(*)::int AS gpus FROM gpu JOIN node USING (node_id) WHERE pool_id = $1 AND gpu.state <> 'offline' AND node.state = 'ready'`,
      [pool.poolId],
    );
    const held = await manager.query<{ profile: string; vgpus: number }[]>(
      `SELECT profile, sum(${entitled})::int AS vgpus FROM subscription WHERE pool_id = $1 AND ${liveSubscription} GROUP BY profile`,
      [pool.poolId],
    );
    const used = held.reduce((sum, { profile, vgpus }) => sum + vgpus * (parts.of.get(profile) ?? 0), 0);
    let free = gpus * parts.perGpu * pool.overcommit - used;
    return all.map((wanted) => {
      const needed = wanted.vgpus * (parts.of.get(wanted.profile) ?? 0);
      if (needed > free) return capacityRefusal(pool, wanted, { fits: fitsOf(parts.of, free) });
      free -= needed;
      return undefined;
    });
  }

  /** How many more of each profile could be sold now, by pool. One statement for any number of pools. */
  async available(
    query: <Row extends object>(sql: string, values: unknown[]) => Promise<Row[]>,
    pools: readonly KnownPool[],
  ): Promise<Map<string, Map<string, number>>> {
    const rows = await query<{ poolId: string; gpus: number; held: Record<string, number> | null }>(
      `SELECT asked.pool_id AS "poolId", coalesce(gpus, 0) AS gpus, held FROM unnest($1::bigint[]) asked (pool_id)
       LEFT JOIN (
         SELECT pool_id, count(*)::int AS gpus FROM gpu JOIN node USING (node_id)
         WHERE pool_id = ANY ($1::bigint[]) AND gpu.state NOT IN ('offline', 'preparing') AND node.state = 'ready' GROUP BY pool_id
       ) usable USING (pool_id)
       LEFT JOIN (
         SELECT pool_id, json_object_agg(profile, vgpus) AS held FROM (
           SELECT pool_id, profile, sum(${entitled})::int AS vgpus FROM subscription WHERE pool_id = ANY ($1::bigint[]) AND ${liveSubscription} GROUP BY 1, 2
         ) live GROUP BY pool_id
       ) sold USING (pool_id)`,
      [pools.map(({ poolId }) => poolId)],
    );
    const byPool = new Map(rows.map((row) => [row.poolId, row]));
    return new Map(
      pools.map((pool) => {
        const parts = partsOf(pool);
        const { gpus = 0, held = null } = byPool.get(pool.poolId) ?? {};
        const used = Object.entries(held ?? {}).reduce(
          (sum, [profile, vgpus]) => sum + vgpus * (parts.of.get(profile) ?? 0),
          0,
        );
        const free = Math.max(0, gpus * parts.perGpu * pool.overcommit - used);
        return [pool.poolId, new Map(fitsOf(parts.of, free).map(({ profile, count }) => [profile, count]))];
      }),
    );
  }
}

function partsOf(pool: KnownPool): { perGpu: number; of: Map<string, number> } {
  const counts = soldProfiles(pool).map((profile) => ({ name: profile.name, count: room(profile, 0n) }));
  const perGpu = counts.reduce((multiple, { count }) => leastCommonMultiple(multiple, count), 1);
  return { perGpu, of: new Map(counts.map(({ name, count }) => [name, perGpu / count])) };
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
