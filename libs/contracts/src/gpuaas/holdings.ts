import { contract, operation } from '../contract.js';
import { Instant, ListOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';

const count = (description: string) => ({ min: 0, max: 1_000_000_000, description, example: 2 });

/** What a team holds of GPUs in one region, or in all. */
export class GpuHoldings {
  @WholeNumber(count('vGPUs of its subscriptions that have not ended.'))
  vgpus!: number;

  @WholeNumber(count('vGPUs of these on which workloads run, start or stop.'))
  vgpus_in_use!: number;

  @WholeNumber(count('Physical GPUs on which these vGPUs are; a GPU that several teams share counts for each of them.'))
  gpus!: number;

  @WholeNumber(count('GPU pool subscriptions that have not ended.'))
  gpu_subscriptions!: number;

  @WholeNumber(count('Workloads that have not ended.'))
  gpu_workloads!: number;

  @WholeNumber(count('Number of bare-metal hosts that the team has, or that are provisioned for it or released.'))
  baremetal_instances!: number;

  @WholeNumber(count('Number of physical GPUs of these hosts.'))
  baremetal_gpus!: number;
}

export class RegionalGpuHoldings extends GpuHoldings {
  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'eu-north' })
  region_name!: string;
}

export class TeamGpuHoldings {
  @Instant({ description: 'Instant of the observation.' })
  as_of!: string;

  @ListOf(() => RegionalGpuHoldings, {
    max: 10_000,
    description: 'Regions in which the team holds something, by `region_id`.',
  })
  regions!: RegionalGpuHoldings[];
}

export class HoldingTeam {
  @Uuid()
  team_id!: string;
}

/** For the teams service, which has authorised its caller. */
export const gpuHoldings = contract('gpuaas.holdings', {
  ofTeam: operation(HoldingTeam, TeamGpuHoldings),
});
