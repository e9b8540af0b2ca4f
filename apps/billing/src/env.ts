import { ServiceEnv } from '@atoll/service';
import { Matches } from 'class-validator';

export class BillingEnv extends ServiceEnv {
  /** ISO 4217, one a deployment: what all prices and costs are in. */
  @Matches(/^[A-Z]{3}$/, { message: 'ATOLL_CURRENCY must be three capital letters of ISO 4217, such as USD' })
  ATOLL_CURRENCY: string = 'USD';
}
