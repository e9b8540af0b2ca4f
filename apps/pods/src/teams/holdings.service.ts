import { requireService, type CallContext } from '@atoll/contracts';
import type { GpuaasPath, HoldingTeam } from '@atoll/contracts/gpuaas';
import type { ClusterHoldings, RegionalPodHoldings, TeamPodHoldings } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

/** What a team holds now beside GPUs, and what a cluster keeps. */
@Injectable()
export class HoldingsService {
  constructor(private readonly statements: Statements) {}

  async ofTeam({ team_id }: HoldingTeam, { caller }: CallContext): Promise<TeamPodHoldings> {
    requireService(caller);
    const regions = await this.statements.query<Omit<RegionalPodHoldings, 'storage_in_gb'> & { storage_in_gb: string }>(
      `SELECT region_id, max(region_name) AS region_name, sum(pods)::int AS pods, sum(pods_in_use)::int AS pods_in_use,
         sum(vms)::int AS vms, sum(vms_in_use)::int AS vms_in_use,
         sum(volumes)::int AS shared_volumes, sum(size_gb)::bigint AS storage_in_gb
       FROM (
         SELECT region_id, region_name, 1 AS pods, (state NOT IN ('stopped', 'failed'))::int AS pods_in_use, 0 AS vms, 0 AS vms_in_use, 0 AS volumes, 0 AS size_gb
         FROM pod WHERE team_id = $1 AND state <> 'deleted'
         UNION ALL SELECT region_id, region_name, 0, 0, 0, 0, 1, size_gb FROM shared_volume WHERE team_id = $1 AND state <> 'deleted'
         UNION ALL SELECT region_id, region_name, 0, 0, 1, (state NOT IN ('stopped', 'failed'))::int, 0, 0 FROM vm WHERE team_id = $1 AND state <> 'deleted'
       ) held GROUP BY region_id ORDER BY region_id`,
      [team_id],
    );
    const counted = regions.map(({ storage_in_gb, ...rest }) => ({ ...rest, storage_in_gb: Number(storage_in_gb) }));
    return { as_of: new Date().toISOString(), regions: counted };
  }

  async ofGpuaas({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<ClusterHoldings> {
    requireService(caller);
    const [held] = await this.statements.query<ClusterHoldings>(
      `SELECT (SELECT count(*)::int FROM vm WHERE gpuaas_id = $1 AND state <> 'deleted') AS vms,
         (SELECT count(*)::int FROM shared_volume WHERE gpuaas_id = $1 AND state <> 'deleted') AS shared_volumes`,
      [gpuaas_id],
    );
    return held ?? { vms: 0, shared_volumes: 0 };
  }
}
