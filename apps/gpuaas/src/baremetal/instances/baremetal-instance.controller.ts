import { type CallContext } from '@atoll/contracts';
import {
  baremetal,
  type BaremetalCredentials,
  type BaremetalInstance,
  type BaremetalPage,
  type BaremetalPath,
  type ListBaremetal,
  type RequestBaremetal,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { BaremetalInstancesService } from './baremetal-instance.service.js';

@Controller()
export class BaremetalInstancesController implements Handlers<typeof baremetal> {
  constructor(private readonly instances: BaremetalInstancesService) {}

  @Handle(baremetal.request)
  request(input: RequestBaremetal, context: CallContext): Promise<BaremetalInstance> {
    return this.instances.request(input, context);
  }

  @Handle(baremetal.list)
  list(input: ListBaremetal, context: CallContext): Promise<BaremetalPage> {
    return this.instances.list(input, context);
  }

  @Handle(baremetal.get)
  get(input: BaremetalPath, context: CallContext): Promise<BaremetalInstance> {
    return this.instances.get(input, context);
  }

  @Handle(baremetal.end)
  end(input: BaremetalPath, context: CallContext): Promise<BaremetalInstance> {
    return this.instances.end(input, context);
  }

  @Handle(baremetal.credentials)
  credentials(input: BaremetalPath, context: CallContext): Promise<BaremetalCredentials> {
    return this.instances.credentials(input, context);
  }
}
