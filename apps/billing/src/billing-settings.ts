import { Variable } from '@atoll/service';
import { Matches } from 'class-validator';

/** What a deployment decides about the billing service. */
export class BillingSettings {
  /** ISO 4217, one a deployment: what all prices and costs are in. */
  @Variable('ATOLL_CURRENCY')
  @Matches(/^[A-Z]{3}$/, { message: 'ATOLL_CURRENCY must be three capital letters of ISO 4217, such as USD' })
  currency: string = 'USD';
}
