import { type CallContext } from '@atoll/contracts';
import {
  gpuaasBatches,
  type EndSubscription,
  type FindPlaces,
  type FindSubscriptions,
  type FoundSubscriptions,
  type Places,
  type Subscription,
  type SubscriptionPath,
} from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PlacesService } from './places.js';
import { SubscriptionListing } from './subscription-listing.js';
import { SubscriptionsService } from './subscription.service.js';

@Controller()
export class BatchesController implements Handlers<typeof gpuaasBatches> {
  constructor(
    private readonly service: SubscriptionsService,
    private readonly known: PlacesService,
    private readonly listing: SubscriptionListing,
    private readonly transactions: Transactions,
  ) {}

  @Handle(gpuaasBatches.end)
  end(input: EndSubscription, context: CallContext): Promise<Subscription> {
    return this.service.end(input, context);
  }

  /**
   * The idempotency key is released last: if that fails, a retry with it finds the subscription ended and undoes it
   * again.
   */
  @Handle(gpuaasBatches.undo)
  async undo({ subscription_id }: SubscriptionPath, { idempotency, ...context }: CallContext): Promise<Subscription> {
    const ended = await this.service.end({ subscription_id }, context);
    if (idempotency) await this.transactions.forget(idempotency, 'subscription_id', subscription_id);
    return ended;
  }

  @Handle(gpuaasBatches.places)
  places(input: FindPlaces, context: CallContext): Promise<Places> {
    return this.known.find(input, context);
  }

  @Handle(gpuaasBatches.subscriptions)
  subscriptions(input: FindSubscriptions, context: CallContext): Promise<FoundSubscriptions> {
    return this.listing.find(input, context);
  }
}
