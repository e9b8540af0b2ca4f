import { Text, WholeNumber } from '../fields.js';

/** How many of one kind of resource a team still holds. */
export class TeamHolding {
  @Text({ max: 64, example: 'gpu_pool_subscription' })
  kind!: string;

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    nullable: true,
    description: 'Number of the resources; null while the service that `kind` then names has not answered.',
    example: 2,
  })
  count!: number | null;
}
