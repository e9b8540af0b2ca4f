import { type CallContext } from '@atoll/contracts';
import { gpuHoldings, type HoldingTeam, type TeamGpuHoldings } from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { HoldingsService } from './holdings.service.js';

@Controller()
export class HoldingsController implements Handlers<typeof gpuHoldings> {
  constructor(private readonly holdings: HoldingsService) {}

  @Handle(gpuHoldings.ofTeam)
  ofTeam(input: HoldingTeam, context: CallContext): Promise<TeamGpuHoldings> {
    return this.holdings.ofTeam(input, context);
  }
}
