import { gpuaasBatches, type CallContext, type EndSubscription, type Subscription } from '@atoll/contracts';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { SubscriptionsService } from './subscription.service.js';

@Controller()
export class BatchesController implements Handlers<typeof gpuaasBatches> {
  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Handle(gpuaasBatches.end)
  end(input: EndSubscription, context: CallContext): Promise<Subscription> {
    return this.subscriptions.end(input, context);
  }
}
