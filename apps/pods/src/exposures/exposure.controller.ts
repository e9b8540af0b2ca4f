import { type CallContext } from '@atoll/contracts';
import {
  exposedServices,
  type ExposedService,
  type ExposedServiceList,
  type ListExposedServices,
  type ExposedServicePath,
  type ExposeService,
  type FindExposedService,
  type UpdateExposedService,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ExposuresService } from './exposure.service.js';

@Controller()
export class ExposuresController implements Handlers<typeof exposedServices> {
  constructor(private readonly exposures: ExposuresService) {}

  @Handle(exposedServices.expose)
  expose(input: ExposeService, context: CallContext): Promise<ExposedService> {
    return this.exposures.expose(input, context);
  }

  @Handle(exposedServices.list)
  list(input: ListExposedServices, context: CallContext): Promise<ExposedServiceList> {
    return this.exposures.list(input, context);
  }

  @Handle(exposedServices.find)
  find(input: FindExposedService, context: CallContext): Promise<ExposedService> {
    return this.exposures.find(input, context);
  }

  @Handle(exposedServices.update)
  update(input: UpdateExposedService, context: CallContext): Promise<ExposedService> {
    return this.exposures.update(input, context);
  }

  @Handle(exposedServices.delete)
  delete(input: ExposedServicePath, context: CallContext): Promise<ExposedService> {
    return this.exposures.delete(input, context);
  }
}
