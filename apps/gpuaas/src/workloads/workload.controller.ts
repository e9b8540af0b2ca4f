import { type CallContext } from '@atoll/contracts';
import {
  workloads,
  type ListWorkloads,
  type StartWorkload,
  type Workload,
  type WorkloadPage,
  type WorkloadPath,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { WorkloadsService } from './workload.service.js';

@Controller()
export class WorkloadsController implements Handlers<typeof workloads> {
  constructor(private readonly workloads: WorkloadsService) {}

  @Handle(workloads.start)
  start(input: StartWorkload, context: CallContext): Promise<Workload> {
    return this.workloads.start(input, context);
  }

  @Handle(workloads.list)
  list(input: ListWorkloads, context: CallContext): Promise<WorkloadPage> {
    return this.workloads.list(input, context);
  }

  @Handle(workloads.stop)
  stop(input: WorkloadPath, context: CallContext): Promise<Workload> {
    return this.workloads.stop(input, context);
  }
}
