import { type CallContext } from '@atoll/contracts';
import { instances, type InstanceList, type ListInstances } from '@atoll/contracts/pods';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { InstancesService } from './instance.service.js';

@Controller()
export class InstancesController implements Handlers<typeof instances> {
  constructor(private readonly instances: InstancesService) {}

  @Handle(instances.list)
  list(input: ListInstances, context: CallContext): Promise<InstanceList | Json<InstanceList>> {
    return this.instances.list(input, context);
  }
}
