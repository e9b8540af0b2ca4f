import { contract, operation } from '../contract.js';
import { ListOf, Text } from '../fields.js';
import { NumberedId, NumberedIds, Uuid } from '../id-fields.js';
import { Region } from './region.js';
import { Subscription, SubscriptionPath } from './subscription.js';

export class EndSubscription {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Uuid({ optional: true, description: 'Id of the team that must have the subscription.' })
  team_id?: string;

  @NumberedId({ optional: true, example: '1', description: 'Id of the pool that the subscription must be of.' })
  pool_id?: string;
}

export class FindPlaces {
  @NumberedIds({ max: 1000, optional: true, description: 'Ids of subscriptions.' })
  subscription_ids?: string[];

  @NumberedIds({ max: 1000, optional: true, description: 'Ids of regions.' })
  region_ids?: string[];
}

class SubscriptionPlace {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @NumberedId({ example: '1' })
  pool_id!: string;

  @Text({ max: 100, example: 'a100-mig' })
  pool_name!: string;

  @Text({ max: 64, example: 'A100-80GB' })
  board!: string;

  @Text({ max: 20, example: '10', description: 'Memory of each vGPU in GB, as decimal text.' })
  v_ram_gb!: string;
}

export class Places {
  @ListOf(() => SubscriptionPlace, { max: 1000 })
  subscriptions!: SubscriptionPlace[];

  @ListOf(() => Region, { max: 1000 })
  regions!: Region[];
}

export class FindSubscriptions {
  @Uuid({ description: 'Id of the team whose subscriptions they are.' })
  team_id!: string;

  @NumberedIds({ max: 1000, description: 'Ids of subscriptions.' })
  subscription_ids!: string[];
}

export class FoundSubscriptions {
  @ListOf(() => Subscription, { max: 1000 })
  data!: Subscription[];
}

/** What the compatibility mount needs of many objects at once, or as one step. */
export const gpuaasBatches = contract('gpuaas.batches', {
  /** As `subscriptions.unsubscribe` with force; `not_found` where the team or the pool that is named is another. */
  end: operation(EndSubscription, Subscription),
  /**
   * Ends a subscription as `end`, and makes the `Idempotency-Key` by which it was made free again. The context is that
   * of the call that made it.
   */
  undo: operation(SubscriptionPath, Subscription),
  /**
   * Of subscriptions those of the caller's teams alone; of all teams for a platform_admin. Nothing is said about the
   * rest.
   */
  places: operation(FindPlaces, Places),
  /**
   * Those of the team among the ids, by id, also those that have ended, and those of a deleted team. Nothing is said
   * about the rest.
   */
  subscriptions: operation(FindSubscriptions, FoundSubscriptions),
});
