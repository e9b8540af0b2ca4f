import { notFound } from '@atoll/contracts';
import { ConnectionChanges, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { PoolEntity } from '../model/pool.entity.js';

export interface KnownPool extends PoolEntity {
  readonly regionId: string;
}

/**
 * Pools and GPU services by id. They never change and are never deleted, so each is cached after its first read, until
 * a connection is lost or opened: the next one may lead to a server that lacks the commit.
 */
@Injectable()
export class PoolCatalogue {
  private readonly known = new Map<string, KnownPool>();
  private readonly gpuaasIds = new Set<string>();

  constructor(
    private readonly statements: Statements,
    connections: ConnectionChanges,
  ) {
    connections.clear(this.known);
    connections.clear(this.gpuaasIds);
  }

  /**
   * Throws `not_found`. Within a transaction by its connection: one that waits for a second keeps the first from
   * whoever would give that back.
   */
  async pool(poolId: string, manager?: EntityManager): Promise<KnownPool> {
    const pool = (await this.poolsOf([poolId], manager)).get(poolId);
    if (!pool) throw notFound('pool');
    return pool;
  }

  /** Those of these pools that exist, by id; `manager` as in `pool`. One statement for all that were never read. */
  async poolsOf(poolIds: readonly string[], manager?: EntityManager): Promise<ReadonlyMap<string, KnownPool>> {
    const ids = [...new Set(poolIds)];
    const found = new Map(ids.flatMap((poolId) => this.known.get(poolId) ?? []).map((pool) => [pool.poolId, pool]));
    const unread = ids.filter((poolId) => !found.has(poolId));
    for (const pool of unread.length > 0 ? await this.read(unread, manager) : []) {
      this.known.set(pool.poolId, pool);
      found.set(pool.poolId, pool);
    }
    return found;
  }

  /** Throws `not_found` for a GPU service that there is not; none asked for is fine. */
  async requireGpuaas(gpuaasId: string | undefined): Promise<void> {
    if (gpuaasId === undefined || this.gpuaasIds.has(gpuaasId)) return;
    const found = await this.statements.query('SELECT FROM gpuaas WHERE gpuaas_id = $1', [gpuaasId]);
    if (found.length === 0) throw notFound('gpuaas');
    this.gpuaasIds.add(gpuaasId);
  }

  private read(poolIds: readonly string[], manager?: EntityManager): Promise<KnownPool[]> {
    return manager
      ? manager.query<KnownPool[]>(readQuery, [poolIds])
      : this.statements.query<KnownPool>(readQuery, [poolIds]);
  }
}

const readQuery = `SELECT pool_id AS "poolId", gpuaas_id AS "gpuaasId", region_id AS "regionId", pool_name AS "poolName", board, sharing_mode AS "sharingMode",
    mechanism, profiles, replicas, overcommit, allow_fallback AS "allowFallback", temporal_replicas AS "temporalReplicas", pool.created_at AS "createdAt"
  FROM pool JOIN gpuaas USING (gpuaas_id) WHERE pool_id = ANY ($1::bigint[])`;
