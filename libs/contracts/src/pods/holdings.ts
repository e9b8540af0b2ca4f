import { contract, operation } from '../contract.js';
import { Instant, ListOf, Text, WholeNumber } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { GpuaasPath } from '../gpuaas/cluster.js';
import { HoldingTeam } from '../gpuaas/holdings.js';

/** Number of pods, VMs and so on that a team holds in one region, or in all. */
export class PodHoldings {
  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of pods that have not been deleted.', example: 2 })
  pods!: number;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of these pods that start, run or stop.', example: 1 })
  pods_in_use!: number;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of VMs that have not been deleted.', example: 2 })
  vms!: number;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of these VMs that start, run or stop.', example: 1 })
  vms_in_use!: number;

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Number of shared volumes that have not been deleted.',
    example: 1,
  })
  shared_volumes!: number;

  @WholeNumber({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    description: 'Size of these volumes in GB, 10^9 bytes.',
    example: 100,
  })
  storage_in_gb!: number;
}

export class RegionalPodHoldings extends PodHoldings {
  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'eu-north' })
  region_name!: string;
}

export class TeamPodHoldings {
  @Instant({ description: 'Time of these figures.' })
  as_of!: string;

  @ListOf(() => RegionalPodHoldings, { max: 10_000 })
  regions!: RegionalPodHoldings[];
}

/** What the cluster of a GPU service keeps for all teams. */
export class ClusterHoldings {
  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of VMs that have not been deleted.', example: 2 })
  vms!: number;

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Number of shared volumes that have not been deleted.',
    example: 1,
  })
  shared_volumes!: number;
}

/** For the services of teams and GPUs, which have authorised their callers. */
export const podHoldings = contract('pods.holdings', {
  ofTeam: operation(HoldingTeam, TeamPodHoldings),
  ofGpuaas: operation(GpuaasPath, ClusterHoldings),
});
