import { IntersectionType } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { NumberedId, OneOf, Text, Uuid } from '../fields.js';

export const billingIntervals = ['monthly', 'weekly', 'daily', 'hourly'] as const;
export type BillingInterval = (typeof billingIntervals)[number];

const billingTimezones = ['local', 'utc'] as const;
type BillingTimezone = (typeof billingTimezones)[number];

const aDate = {
  max: 19,
  pattern: /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d$/,
  patternHint: 'a date and time as YYYY-MM-DDTHH:MM:SS, such as 2026-10-01T00:00:00, without a zone',
};
const aMonth = { max: 7, pattern: /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])$/, patternHint: 'a month as YYYY-MM, such as 2026-10' };

/** `timezone` left out or empty means `utc`. */
class InTimezone {
  @Transform(({ value }: { value: unknown }) => (value === '' ? undefined : value))
  @OneOf(billingTimezones, {
    optional: true,
    description: 'What the dates are told in: UTC, or the zone of the caller’s profile. Left out or empty: utc.',
    example: 'utc',
  })
  timezone?: BillingTimezone;
}

/** Which time a report is of: from `start_date` up to and without `end_date`, wall-clock times in `timezone`. */
export class BillingRange extends InTimezone {
  @Text({ ...aDate, example: '2026-10-01T00:00:00' })
  start_date!: string;

  @Text({ ...aDate, example: '2026-11-01T00:00:00', description: 'Not part of the range.' })
  end_date!: string;

  @OneOf(billingIntervals, { example: 'daily' })
  interval!: BillingInterval;
}

class OfTeam {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;
}

class OfWorkspace {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a11' })
  workspace_id!: string;
}

class InRegion {
  @NumberedId({ allow: ['all'], example: 'all', description: 'A region, or all of them.' })
  region_id!: string;
}

export class TeamBillingQuery extends IntersectionType(OfTeam, BillingRange) {}
export class WorkspaceBillingQuery extends IntersectionType(OfWorkspace, BillingRange) {}
export class RegionalBillingQuery extends IntersectionType(OfTeam, BillingRange, InRegion) {}

export class ComparisonPath extends OfTeam {
  @Text({ ...aMonth, example: '2026-09' })
  start_month!: string;

  @Text({ ...aMonth, example: '2026-10', description: 'Later than `start_month`.' })
  end_month!: string;
}
export class ComparisonZone extends InTimezone {}
export class ComparisonQuery extends IntersectionType(ComparisonPath, ComparisonZone) {}
