import { AppError } from '@atoll/errors';
import { room } from '@atoll/gpu';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { KnownPool } from '../pools/pool-catalogue.js';
import { soldProfiles } from '../pools/pool-terms.js';
import { liveSubscription } from './subscription.machine.js';

/**
 * What is sold of a pool with overcommit: slices × overcommit in all. Where it sells several profiles, a subscription takes the part of a GPU that one
 * slice of its profile is, 1 / (slices of the profile that fit on a GPU): counted in parts so small that each is a whole number of them.
 */
@Injectable()
export class Entitlements {
  /** The subscription, written by this transaction, is to hold `vgpus` more. Throws `insufficient_capacity`, saying what would fit. */
  async require(manager: EntityManager, pool: KnownPool, asked: { subscriptionId: string; profile: string; vgpus: number }): Promise<void> {
    // Who asks of one pool asks one after the other.
    await manager.query('SELECT FROM pool WHERE pool_id = $1 FOR NO KEY UPDATE', [pool.poolId]);
    const parts = partsOf(pool);
    const [{ gpus = 0 } = {}] = await manager.query<{ gpus: number }[]>(
      `SELECT count(*)::int AS gpus FROM gpu JOIN node USING (node_id) WHERE pool_id = $1 AND gpu.state <> 'offline' AND node.state = 'ready'`,
      [pool.poolId],
    );
    const held = await manager.query<{ profile: string; vgpus: number }[]>(
      `SELECT profile, sum(vgpus)::int AS vgpus FROM subscription
       WHERE pool_id = $1 AND ${liveSubscription} AND NOT (subscription_id = $2 AND state = 'subscribing') GROUP BY profile`,
      [pool.poolId, asked.subscriptionId],
    );
    const used = held.reduce((sum, { profile, vgpus }) => sum + vgpus * (parts.of.get(profile) ?? 0), 0);
    const free = gpus * parts.perGpu * pool.overcommit - used;
    if (asked.vgpus * (parts.of.get(asked.profile) ?? 0) > free) throw refusal(asked, free, parts.of);
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
           SELECT pool_id, profile, sum(vgpus)::int AS vgpus FROM subscription WHERE pool_id = ANY ($1::bigint[]) AND ${liveSubscription} GROUP BY 1, 2
         ) live GROUP BY pool_id
       ) sold USING (pool_id)`,
      [pools.map(({ poolId }) => poolId)],
    );
    const byPool = new Map(rows.map((row) => [row.poolId, row]));
    return new Map(
      pools.map((pool) => {
        const parts = partsOf(pool);
        const { gpus = 0, held = null } = byPool.get(pool.poolId) ?? {};
        const used = Object.entries(held ?? {}).reduce((sum, [profile, vgpus]) => sum + vgpus * (parts.of.get(profile) ?? 0), 0);
        const free = Math.max(0, gpus * parts.perGpu * pool.overcommit - used);
        return [pool.poolId, new Map([...parts.of].map(([profile, part]) => [profile, Math.floor(free / part)]))];
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

function refusal({ profile, vgpus }: { profile: string; vgpus: number }, free: number, parts: Map<string, number>): AppError {
  const fits = [...parts].flatMap(([name, part]) => (free >= part ? [`${Math.floor(free / part)} of ${name}`] : []));
  const would = fits.length > 0 ? `What would fit: ${fits.join(', or ')}.` : 'Nothing would fit at present.';
  return new AppError(
    'insufficient_capacity',
    `The pool is sold out: it has no ${vgpus} ${vgpus === 1 ? 'vGPU' : 'vGPUs'} of ${profile} left. ${would}`,
  );
}
