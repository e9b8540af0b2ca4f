import { requireService, type CallContext } from '@atoll/contracts';
import type { HoldingTeam, RegionalGpuHoldings, TeamGpuHoldings } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { liveBaremetal } from '../model/baremetal-instance.machine.js';
import { liveSubscription } from '../model/subscription.machine.js';
import { liveWorkload } from '../model/workload.machine.js';

/** One statement, so that all figures are of one instant. */
const holdingsQuery = `
  WITH live AS MATERIALIZED (
    SELECT subscription_id, vgpus, region_id FROM subscription JOIN pool USING (pool_id) JOIN gpuaas USING (gpuaas_id)
    WHERE team_id = $1 AND subscription.${liveSubscription}
  ), held AS (
    SELECT region_id, sum(vgpus)::int AS vgpus, count(*)::int AS subscriptions FROM live GROUP BY region_id
  ), used AS (
    SELECT region_id, sum(workload.vgpus)::int AS vgpus, count(*)::int AS workloads
    FROM live JOIN workload USING (subscription_id) WHERE workload.${liveWorkload} GROUP BY region_id
  ), placed AS (
    SELECT region_id, count(DISTINCT gpu_id)::int AS gpus FROM live JOIN lease USING (subscription_id)
    WHERE lost_reason IS NULL GROUP BY region_id
  ), metal AS (
    SELECT n.region_id, count(*)::int AS instances, sum(n.gpu_count)::int AS gpus
    FROM baremetal_instance i JOIN baremetal_node n USING (node_id) WHERE team_id = $1 AND i.${liveBaremetal} GROUP BY n.region_id
  )
  SELECT clock_timestamp() AS as_of, region_id, region_name, coalesce(held.vgpus, 0) AS vgpus, coalesce(used.vgpus, 0) AS vgpus_in_use,
    coalesce(placed.gpus, 0) AS gpus, coalesce(subscriptions, 0) AS gpu_subscriptions, coalesce(workloads, 0) AS gpu_workloads,
    coalesce(instances, 0) AS baremetal_instances, coalesce(metal.gpus, 0) AS baremetal_gpus
  FROM (VALUES (1)) one LEFT JOIN (held FULL JOIN metal USING (region_id) JOIN region USING (region_id) LEFT JOIN used USING (region_id) LEFT JOIN placed USING (region_id)) ON true
  ORDER BY region_id`;

/** What a team holds of GPUs now. */
@Injectable()
export class HoldingsService {
  constructor(private readonly statements: Statements) {}

  async ofTeam({ team_id }: HoldingTeam, { caller }: CallContext): Promise<TeamGpuHoldings> {
    requireService(caller);
    // For a team that holds nothing, one row with the time alone.
    const rows = await this.statements.query<
      { as_of: Date; region_id: string | null } & Omit<RegionalGpuHoldings, 'region_id'>
    >(holdingsQuery, [team_id]);
    const regions = rows.flatMap(({ as_of: _asOf, region_id, ...holdings }) =>
      region_id === null ? [] : [{ ...holdings, region_id }],
    );
    return { as_of: (rows[0]?.as_of ?? new Date()).toISOString(), regions };
  }
}
