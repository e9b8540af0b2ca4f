import { podBatches, type CallContext, type ExposedServiceList, type TeamPath } from '@atoll/contracts';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ExposuresOfTeam } from './exposures-of-team.js';

@Controller()
export class ExposureBatchesController implements Handlers<typeof podBatches> {
  constructor(private readonly exposures: ExposuresOfTeam) {}

  @Handle(podBatches.exposed)
  exposed(input: TeamPath, context: CallContext): Promise<ExposedServiceList> {
    return this.exposures.list(input, context);
  }
}
