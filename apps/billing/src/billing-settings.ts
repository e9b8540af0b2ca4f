import { WholeNumber } from '@atoll/contracts';
import { Variable } from '@atoll/service';
import { IsIn } from 'class-validator';

/** The connections of a process are enough for so many reports, each of which holds one, and for everything else. */
const mostReports = 7;

/** What a deployment decides about the billing service. */
export class BillingSettings {
  /** ISO 4217, one a deployment: what all prices and costs are in. */
  @Variable('ATOLL_CURRENCY')
  @IsIn(Intl.supportedValuesOf('currency'), {
    message: 'ATOLL_CURRENCY must be a currency of ISO 4217, in three capital letters such as USD',
  })
  currency: string = 'USD';

  /** Reports that one process makes at once; more wait. */
  @Variable('ATOLL_REPORTS_AT_ONCE')
  @WholeNumber({ min: 1, max: mostReports })
  reportsAtOnce: number = 4;

  /** Of these, for one team, and for one user in all their teams. */
  @Variable('ATOLL_REPORTS_PER_TEAM')
  @WholeNumber({ min: 1, max: mostReports })
  reportsPerTeam: number = 2;
}
