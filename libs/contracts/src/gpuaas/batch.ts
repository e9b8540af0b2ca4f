import { contract, operation } from '../contract.js';
import { NumberedId, Uuid } from '../fields.js';
import { Subscription } from './subscription.js';

export class EndSubscription {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Uuid({ optional: true, description: 'Id of the team that must have the subscription.' })
  team_id?: string;

  @NumberedId({ optional: true, example: '1', description: 'Id of the pool that the subscription must be of.' })
  pool_id?: string;
}

/** What the compatibility mount needs as one step. */
export const gpuaasBatches = contract('gpuaas.batches', {
  /** As `subscriptions.unsubscribe` with force; `not_found` where the team or the pool that is named is another. */
  end: operation(EndSubscription, Subscription),
});
