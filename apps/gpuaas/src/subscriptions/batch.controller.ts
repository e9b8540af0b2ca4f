import { type CallContext } from '@atoll/contracts';
import { gpuaasBatches, type EndSubscription, type FindPlaces, type Places, type Subscription } from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PlacesService } from './places.js';
import { SubscriptionsService } from './subscription.service.js';

@Controller()
export class BatchesController implements Handlers<typeof gpuaasBatches> {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly known: PlacesService,
  ) {}

  @Handle(gpuaasBatches.end)
  end(input: EndSubscription, context: CallContext): Promise<Subscription> {
    return this.subscriptions.end(input, context);
  }

  @Handle(gpuaasBatches.places)
  places(input: FindPlaces, context: CallContext): Promise<Places> {
    return this.known.find(input, context);
  }
}
