import { type CallContext } from '@atoll/contracts';
import {
  pods,
  type CreatePod,
  type ListPods,
  type Pod,
  type PodAction,
  type PodPage,
  type PodPath,
  type UpdatePod,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PodActions } from './pod-actions.js';
import { PodReader } from './pod-reader.js';
import { PodsService } from './pod.service.js';

@Controller()
export class PodsController implements Handlers<typeof pods> {
  constructor(
    private readonly pods: PodsService,
    private readonly actions: PodActions,
    private readonly reader: PodReader,
  ) {}

  @Handle(pods.create)
  create(input: CreatePod, context: CallContext): Promise<Pod> {
    return this.pods.create(input, context);
  }

  @Handle(pods.list)
  list(input: ListPods, context: CallContext): Promise<PodPage> {
    return this.reader.list(input, context);
  }

  @Handle(pods.get)
  get(input: PodPath, context: CallContext): Promise<Pod> {
    return this.reader.get(input, context);
  }

  @Handle(pods.act)
  act(input: PodAction, context: CallContext): Promise<Pod> {
    return this.actions.act(input, context);
  }

  @Handle(pods.update)
  update(input: UpdatePod, context: CallContext): Promise<Pod> {
    return this.pods.update(input, context);
  }

  @Handle(pods.delete)
  delete(input: PodPath, context: CallContext): Promise<Pod> {
    return this.actions.delete(input, context);
  }
}
