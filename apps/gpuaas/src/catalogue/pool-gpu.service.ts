import { pageWindow, type CallContext } from '@atoll/contracts';
import { type Gpu, type ListPoolGpus, type PoolGpu, type PoolGpuPage } from '@atoll/contracts/gpuaas';
import { boardNamed } from '@atoll/gpu';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import { GpuEntity } from '../model/gpu.entity.js';
import { GpuReader } from '../sharing/gpu-reader.js';
import { SubscriptionEntity } from '../model/subscription.entity.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { turnsOf } from '../sharing/pool-terms.js';

/** The GPUs of a pool as a team sees them: other tenants and their workloads are not shown. */
@Injectable()
export class PoolGpusService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly catalogue: PoolCatalogue,
    private readonly gpus: GpuReader,
    private readonly teams: TeamDirectory,
  ) {}

  async list({ pool_id, team_id, ...asked }: ListPoolGpus, { caller }: CallContext): Promise<PoolGpuPage> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    const pool = await this.catalogue.pool(pool_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { manager } = this.dataSource;
    const [rows, total] = await manager.findAndCount(GpuEntity, {
      where: { poolId: pool_id },
      order: { gpuId: 'ASC' },
      take: limit,
      skip: offset,
    });
    const views = await this.gpus.read(rows);
    const own = await this.ownOf(team_id, views);
    return { data: views.map((gpu) => poolGpuView(gpu, pool, own)), pagination: { page, limit, total } };
  }

  /** Which of the subscriptions on these GPUs are the team's. */
  private async ownOf(teamId: string, gpus: readonly Gpu[]): Promise<ReadonlySet<string>> {
    const ids = gpus.flatMap(({ slices, tenants }) =>
      [...slices, ...tenants].map(({ subscription_id }) => subscription_id),
    );
    const found = await this.dataSource.manager.find(SubscriptionEntity, {
      where: { subscriptionId: In([...new Set(ids)]), teamId },
      select: { subscriptionId: true },
    });
    return new Set(found.map(({ subscriptionId }) => subscriptionId));
  }
}

function poolGpuView(gpu: Gpu, pool: KnownPool, own: ReadonlySet<string>): PoolGpu {
  const { gpu_id, board, mode, origin, transition } = gpu;
  const holderOf = ({ subscription_id, workload_id }: Gpu['tenants'][number]) =>
    own.has(subscription_id) ? { subscription_id, workload_id } : { subscription_id: null, workload_id: null };
  return {
    gpu_id,
    board,
    mode,
    origin,
    transition,
    slots: mode === 'Temporal' ? turnsOf(pool) : spatialSlotsOf(pool),
    slices: gpu.slices.map((slice) => ({
      profile: slice.profile,
      start: slice.start,
      size: slice.size,
      v_ram_gb: slice.v_ram_gb,
      ...holderOf(slice),
      state: own.has(slice.subscription_id) ? slice.state : null,
    })),
    tenants: gpu.tenants.map(holderOf),
  };
}

function spatialSlotsOf({ mechanism, replicas, board }: KnownPool): number {
  return mechanism === 'mig' ? (boardNamed(board)?.memorySlices ?? 0) : (replicas ?? 0);
}
