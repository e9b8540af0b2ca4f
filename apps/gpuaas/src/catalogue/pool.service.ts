import { notFound, pageWindow, requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import {
  type AvailablePool,
  type AvailablePoolPage,
  type AvailableRegionPage,
  type AvailableRegionsQuery,
  type CreatePool,
  type FindAvailablePools,
  type ListPools,
  type Pool,
  type PoolPage,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements, Transactions, unique } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { GpuEntity } from '../model/gpu.entity.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { Allocation } from '../allocation/allocation.js';
import { KnownPrices } from '../prices/known-prices.js';
import { GpuaasEntity } from '../model/region.entity.js';
import { Entitlements } from '../allocation/entitlements.js';
import { poolTermsOf } from './pool-check.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { PoolEntity } from '../model/pool.entity.js';
import { isolationOf, skuOf, soldProfiles } from '../sharing/pool-terms.js';

interface AskedGpu {
  gpu: GpuEntity;
  gpuaasId: string;
  isReady: boolean;
}

/** Pools: made by the operator, offered to teams. */
@Injectable()
export class PoolsService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly teams: TeamDirectory,
    private readonly gpus: GpuSteps,
    private readonly catalogue: PoolCatalogue,
    private readonly allocation: Allocation,
    private readonly entitlements: Entitlements,
    private readonly prices: KnownPrices,
  ) {}

  async create(asked: CreatePool, context: CallContext): Promise<Pool> {
    requirePlatformAdmin(context.caller);
    const { gpuaas_id, pool_name, gpu_ids } = asked;
    const { poolId } = await this.transactions.once(context, async (manager) => {
      if (!(await manager.existsBy(GpuaasEntity, { gpuaasId: gpuaas_id }))) throw notFound('gpuaas');
      const gpus = await this.lockGpus(manager, asked);
      const board = boardOfAll(gpus);
      const pool = manager.create(PoolEntity, {
        ...poolTermsOf(asked, board),
        board,
        gpuaasId: gpuaas_id,
        poolName: pool_name,
        sharingMode: asked.sharing_mode,
        mechanism: asked.mechanism,
      });
      const saved = await unique(manager.save(pool), 'The GPU service already has a pool with this name.');
      await this.addGpus(manager, gpus, saved.poolId, context);
      return { poolId: saved.poolId };
    });
    return poolView(await this.catalogue.pool(poolId), gpu_ids);
  }

  async list({ gpuaas_id, ...asked }: ListPools, { caller }: CallContext): Promise<PoolPage> {
    requirePlatformAdmin(caller);
    await this.catalogue.requireGpuaas(gpuaas_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { ids, total } = await this.page({ gpuaas_id }, limit, offset);
    const gpus = await this.statements.query<{ poolId: string; gpuId: string }>(
      `SELECT pool_id AS "poolId", gpu_id AS "gpuId" FROM gpu WHERE pool_id = ANY ($1::bigint[]) ORDER BY gpu_id`,
      [ids],
    );
    const byPool = Map.groupBy(gpus, ({ poolId }) => poolId);
    const data = (await this.poolsOf(ids)).map((pool) =>
      poolView(
        pool,
        (byPool.get(pool.poolId) ?? []).map(({ gpuId }) => gpuId),
      ),
    );
    return { data, pagination: { page, limit, total } };
  }

  /** What a team could subscribe to now. */
  async available(
    { team_id, gpuaas_id, pool_id, ...asked }: FindAvailablePools,
    { caller }: CallContext,
  ): Promise<AvailablePoolPage> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    await this.catalogue.requireGpuaas(gpuaas_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { ids, total } = await this.page({ gpuaas_id, pool_id }, limit, offset);
    return { data: await this.offers(await this.poolsOf(ids), team_id), pagination: { page, limit, total } };
  }

  async availableRegions(
    { team_id, ...asked }: AvailableRegionsQuery,
    { caller }: CallContext,
  ): Promise<AvailableRegionPage> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    const { page, limit, offset } = pageWindow(asked, 1);
    const { total, rows } = await readPage<AvailableRegionPage['data'][number]>(this.statements, {
      from: `(
         SELECT region.*, ARRAY(
           SELECT gpuaas_id::text FROM gpuaas WHERE region_id = region.region_id AND EXISTS (SELECT FROM pool WHERE pool.gpuaas_id = gpuaas.gpuaas_id)
           ORDER BY gpuaas_id
         ) AS gpuaas_ids FROM region
       ) offering WHERE gpuaas_ids <> '{}'`,
      order: 'created_at, region_id',
      window: 'LIMIT $1 OFFSET $2',
      columns: 'region_id, region_name, city, country, gpuaas_ids',
      values: [limit, offset],
    });
    return { data: rows, pagination: { page, limit, total } };
  }

  /** Three statements for any number of pools. */
  private async offers(pools: readonly KnownPool[], teamId: string): Promise<AvailablePool[]> {
    const entitled = pools.filter(({ overcommit }) => overcommit > 1);
    const leased = pools.filter(({ overcommit }) => overcommit === 1);
    const available = new Map([
      ...(entitled.length > 0 ? await this.entitlements.available(entitled) : []),
      ...(leased.length > 0 ? await this.allocation.roomsIn(leased) : []),
    ]);
    const sold = pools.map((pool) => ({ pool, profiles: soldProfiles(pool) }));
    const skus = new Set(sold.flatMap(({ pool, profiles }) => profiles.map(({ name }) => skuOf(pool.board, name))));
    const prices = await this.prices.of([...skus], teamId);
    return sold.map(({ pool, profiles }) => ({
      pool_id: pool.poolId,
      pool_name: pool.poolName,
      gpuaas_id: pool.gpuaasId,
      region_id: pool.regionId,
      board: pool.board,
      sharing_mode: pool.sharingMode,
      isolation: isolationOf[pool.mechanism],
      profiles: profiles.map(({ name, vRamGb }) => ({
        profile: name,
        v_ram_gb: vRamGb,
        available_vgpus: available.get(pool.poolId)?.get(name) ?? 0,
        ...(prices.get(skuOf(pool.board, name)) ?? { unit_price: null, currency: null }),
      })),
    }));
  }

  /** In the order of the ids. */
  private async poolsOf(ids: readonly string[]): Promise<KnownPool[]> {
    const pools = await this.catalogue.poolsOf(ids);
    return ids.flatMap((id) => pools.get(id) ?? []);
  }

  private async page(
    { gpuaas_id, pool_id }: { gpuaas_id: string | undefined; pool_id?: string | undefined },
    limit: number,
    offset: number,
  ): Promise<{ ids: string[]; total: number }> {
    const { total, rows } = await readPage<{ pool_id: string }>(this.statements, {
      from: 'pool WHERE ($1::bigint IS NULL OR gpuaas_id = $1) AND ($2::bigint IS NULL OR pool_id = $2)',
      order: 'created_at, pool_id',
      window: 'LIMIT $3 OFFSET $4',
      columns: 'pool_id',
      values: [gpuaas_id ?? null, pool_id ?? null, limit, offset],
    });
    return { total, ids: rows.map(({ pool_id }) => pool_id) };
  }

  private async lockGpus(manager: EntityManager, { gpuaas_id, gpu_ids }: CreatePool): Promise<AskedGpu[]> {
    // Their nodes first, as whoever moves a node does: none of them may become ready between this look and the end of
    // the transaction.
    const nodes = await manager.query<{ node_id: string; gpuaas_id: string; is_ready: boolean }[]>(
      `SELECT node_id, gpuaas_id, state IN ('ready', 'cordoned') AS is_ready FROM node
       WHERE node_id IN (SELECT node_id FROM gpu WHERE gpu_id = ANY ($1::bigint[])) ORDER BY node_id FOR SHARE`,
      [gpu_ids],
    );
    const nodesById = new Map(nodes.map((node) => [node.node_id, node]));
    const gpus = (await this.gpus.lockAll(manager, gpu_ids)).map((gpu) => {
      const node = nodesById.get(gpu.nodeId);
      return { gpu, gpuaasId: node?.gpuaas_id ?? '', isReady: node?.is_ready ?? false };
    });
    const gpusById = new Map(gpus.map((found) => [found.gpu.gpuId, found]));
    gpu_ids.forEach((id, at) => {
      const found = gpusById.get(id);
      if (found?.gpuaasId !== gpuaas_id)
        throw invalidField(`gpu_ids.${at}`, 'isGpu', 'must be a GPU of a node of this GPU service.');
      if (found.gpu.poolId !== null)
        throw new AppError('conflict', `GPU ${id} is already in pool ${found.gpu.poolId}.`);
    });
    return gpus;
  }

  private async addGpus(
    manager: EntityManager,
    gpus: readonly AskedGpu[],
    poolId: string,
    context: CallContext,
  ): Promise<void> {
    const cause = causeOf(context, `pool ${poolId}`);
    const ready = new Set(gpus.filter(({ isReady }) => isReady).map(({ gpu }) => gpu.gpuId));
    const all = gpus.map(({ gpu }) => gpu);
    const pooled = await this.gpus.moveAll(manager, all, 'POOLED', cause, { poolId });
    await this.gpus.beginAll(
      manager,
      pooled.filter(({ gpuId }) => ready.has(gpuId)),
      'PREPARE',
      cause,
    );
  }
}

function boardOfAll(gpus: readonly AskedGpu[]): string {
  const boards = [...new Set(gpus.map(({ gpu }) => gpu.board))];
  if (boards.length > 1)
    throw invalidField('gpu_ids', 'isOneBoard', `must be GPUs of one board; these are ${boards.join(' and ')}.`);
  return boards[0] ?? '';
}

function poolView(pool: KnownPool, gpuIds: string[]): Pool {
  return {
    pool_id: pool.poolId,
    gpuaas_id: pool.gpuaasId,
    region_id: pool.regionId,
    pool_name: pool.poolName,
    board: pool.board,
    gpu_ids: gpuIds,
    sharing_mode: pool.sharingMode,
    mechanism: pool.mechanism,
    profiles: pool.profiles,
    replicas: pool.replicas,
    overcommit: pool.overcommit,
    allow_fallback: pool.allowFallback,
    temporal_replicas: pool.temporalReplicas,
    created_at: pool.createdAt.toISOString(),
  };
}
