import { requireService, type CallContext } from '@atoll/contracts';
import { podUsages, type PodUsages, type ReadPodUsage } from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PodUsageReader } from './pod-usage-reader.js';

@Controller()
export class PodUsageController implements Handlers<typeof podUsages> {
  constructor(private readonly reader: PodUsageReader) {}

  @Handle(podUsages.read)
  async read(input: ReadPodUsage, { caller }: CallContext): Promise<PodUsages> {
    requireService(caller);
    return { data: await this.reader.read(input) };
  }
}
