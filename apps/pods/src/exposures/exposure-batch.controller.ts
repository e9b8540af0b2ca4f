import { type CallContext } from '@atoll/contracts';
import { podBatches, type ExposedServiceList, type FindExposed, type FindInstances, type FoundInstances } from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { InstancesOfTeams } from '../instances/instances-of-teams.js';
import { ExposuresOfTeam } from './exposures-of-team.js';

@Controller()
export class ExposureBatchesController implements Handlers<typeof podBatches> {
  constructor(
    private readonly exposures: ExposuresOfTeam,
    private readonly all: InstancesOfTeams,
  ) {}

  @Handle(podBatches.exposed)
  exposed(input: FindExposed, context: CallContext): Promise<ExposedServiceList> {
    return this.exposures.list(input, context);
  }

  @Handle(podBatches.instances)
  instances(input: FindInstances, context: CallContext): Promise<FoundInstances> {
    return this.all.find(input, context);
  }
}
