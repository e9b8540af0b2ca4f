import { ShownInteger, ShownList, ShownNumber, ShownText } from '../http/old-answers.js';
import { PlaceInListing } from '../http/old-pages.js';
import type { ExactNumber } from '../http/exact.js';

export class SubscriptionUsage {
  @ShownInteger('Id of the subscription.')
  subscription_id!: ExactNumber;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownInteger('Number of vGPUs; 0 once the subscription has ended.')
  gpu_count!: number;

  @ShownNumber('vGPU hours in the range.')
  hours_used!: ExactNumber;

  @ShownNumber('Cost: the exact decimal.')
  cost!: ExactNumber;

  @ShownText('Instant of the subscription; null where it is no longer known.', { nullable: true })
  start_time!: string | null;

  @ShownText('Instant of the end: not known.', { nullable: true })
  end_time!: string | null;

  @ShownText('Status of the subscription.', { example: 'subscribed' })
  status!: string;
}

export class UsagePage extends PlaceInListing {
  @ShownList(() => SubscriptionUsage, 'Subscriptions of the page.')
  items!: SubscriptionUsage[];

  @ShownNumber('vGPU hours of all subscriptions.')
  total_hours!: ExactNumber;

  @ShownNumber('Cost of all subscriptions.')
  total_cost!: ExactNumber;
}

export class UsagePoint {
  @ShownText('Start of the interval.')
  timestamp!: string;

  @ShownNumber('vGPU hours.')
  hours!: ExactNumber;

  @ShownNumber('Not known: 0.')
  tflops!: number;

  @ShownNumber('vGPU hours once more.')
  value!: ExactNumber;
}

export class UsageGraph {
  @ShownList(() => UsagePoint, 'Intervals of the range.')
  data!: UsagePoint[];

  @ShownText('Length of the intervals: 1h, 1d or 1w.', { example: '1d' })
  granularity!: string;

  @ShownNumber('vGPU hours.')
  total_hours!: ExactNumber;

  @ShownNumber('Not known: 0.')
  total_tflops!: number;
}
