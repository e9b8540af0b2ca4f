import { type CallContext } from '@atoll/contracts';
import { type GpuaasPath, type HoldingTeam } from '@atoll/contracts/gpuaas';
import { podHoldings, type ClusterHoldings, type TeamPodHoldings } from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { HoldingsService } from './holdings.service.js';

@Controller()
export class HoldingsController implements Handlers<typeof podHoldings> {
  constructor(private readonly holdings: HoldingsService) {}

  @Handle(podHoldings.ofTeam)
  ofTeam(input: HoldingTeam, context: CallContext): Promise<TeamPodHoldings> {
    return this.holdings.ofTeam(input, context);
  }

  @Handle(podHoldings.ofGpuaas)
  ofGpuaas(input: GpuaasPath, context: CallContext): Promise<ClusterHoldings> {
    return this.holdings.ofGpuaas(input, context);
  }
}
