import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  podWorkloads,
  type CheckPodWorkload,
  type PodStart,
  type PodSubscription,
  type PodWorkload,
  type StartPodWorkload,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PodWorkloadsService } from './pod-workload.service.js';

@Controller()
export class PodWorkloadsController implements Handlers<typeof podWorkloads> {
  constructor(private readonly workloads: PodWorkloadsService) {}

  @Handle(podWorkloads.check)
  check(input: CheckPodWorkload, context: CallContext): Promise<PodSubscription> {
    return this.workloads.check(input, context);
  }

  @Handle(podWorkloads.start)
  start(input: StartPodWorkload, context: CallContext): Promise<PodWorkload> {
    return this.workloads.start(input, context);
  }

  @Handle(podWorkloads.end)
  end(input: PodStart, context: CallContext): Promise<Nothing> {
    return this.workloads.end(input, context);
  }
}
