import { type CallContext } from '@atoll/contracts';
import { poolGpus, type ListPoolGpus, type PoolGpuPage } from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PoolGpusService } from './pool-gpu.service.js';

@Controller()
export class PoolGpusController implements Handlers<typeof poolGpus> {
  constructor(private readonly gpus: PoolGpusService) {}

  @Handle(poolGpus.list)
  list(input: ListPoolGpus, context: CallContext): Promise<PoolGpuPage> {
    return this.gpus.list(input, context);
  }
}
