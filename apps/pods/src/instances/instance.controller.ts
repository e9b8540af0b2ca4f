import { instances, type CallContext, type InstanceList, type ListInstances } from '@atoll/contracts';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { InstancesService } from './instance.service.js';

@Controller()
export class InstancesController implements Handlers<typeof instances> {
  constructor(private readonly instances: InstancesService) {}

  @Handle(instances.list)
  list(input: ListInstances, context: CallContext): Promise<InstanceList> {
    return this.instances.list(input, context);
  }
}
