import { type CallContext } from '@atoll/contracts';
import {
  subscriptions,
  type ListAllSubscriptions,
  type ReadUtilization,
  type SubscriptionUtilization,
  type ListSubscriptions,
  type ResizeSubscription,
  type Subscribe,
  type Subscription,
  type SubscriptionList,
  type SubscriptionPage,
  type Unsubscribe,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { SubscriptionAccepting } from './subscription-accepting.js';
import { SubscriptionListing } from './subscription-listing.js';
import { SubscriptionsService } from './subscription.service.js';

@Controller()
export class SubscriptionsController implements Handlers<typeof subscriptions> {
  constructor(
    private readonly accepting: SubscriptionAccepting,
    private readonly subscriptions: SubscriptionsService,
    private readonly listing: SubscriptionListing,
  ) {}

  @Handle(subscriptions.subscribe)
  subscribe(input: Subscribe, context: CallContext): Promise<Subscription> {
    return this.accepting.subscribe(input, context);
  }

  @Handle(subscriptions.unsubscribe)
  unsubscribe(input: Unsubscribe, context: CallContext): Promise<Subscription> {
    return this.subscriptions.unsubscribe(input, context);
  }

  @Handle(subscriptions.resize)
  resize(input: ResizeSubscription, context: CallContext): Promise<Subscription> {
    return this.subscriptions.resize(input, context);
  }

  @Handle(subscriptions.listAll)
  listAll(input: ListAllSubscriptions, context: CallContext): Promise<SubscriptionPage> {
    return this.listing.all(input, context);
  }

  @Handle(subscriptions.list)
  list(input: ListSubscriptions, context: CallContext): Promise<SubscriptionList | Json<SubscriptionList>> {
    return this.listing.ofTeam(input, context);
  }

  @Handle(subscriptions.utilization)
  utilization(input: ReadUtilization, context: CallContext): Promise<SubscriptionUtilization> {
    return this.listing.utilization(input, context);
  }
}
