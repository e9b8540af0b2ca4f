import { type CallContext, type Nothing, type TeamPath } from '@atoll/contracts';
import { podLimits, type PodLimits, type SetTeamPodLimits, type TeamPodLimits } from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PodLimitsService } from './pod-limit.service.js';

@Controller()
export class PodLimitsController implements Handlers<typeof podLimits> {
  constructor(private readonly limits: PodLimitsService) {}

  @Handle(podLimits.get)
  get(_input: Nothing, context: CallContext): Promise<PodLimits> {
    return this.limits.get(context);
  }

  @Handle(podLimits.set)
  set(input: PodLimits, context: CallContext): Promise<PodLimits> {
    return this.limits.set(input, context);
  }

  @Handle(podLimits.ofTeam)
  ofTeam(input: TeamPath, context: CallContext): Promise<TeamPodLimits> {
    return this.limits.ofTeam(input, context);
  }

  @Handle(podLimits.setOfTeam)
  setOfTeam(input: SetTeamPodLimits, context: CallContext): Promise<TeamPodLimits> {
    return this.limits.setOfTeam(input, context);
  }
}
