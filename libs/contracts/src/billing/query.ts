import { IntersectionType } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { Instant, OneOf, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';

export const billingIntervals = ['monthly', 'weekly', 'daily', 'hourly'] as const;
export type BillingInterval = (typeof billingIntervals)[number];

const billingTimezones = ['local', 'utc'] as const;
type BillingTimezone = (typeof billingTimezones)[number];

/** A date of the Gregorian calendar in the years 2000 to 2199; 2100 is no leap year. */
const aDay = [
  String.raw`2[01]\d\d-(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])`,
  String.raw`2[01]\d\d-(?:0[469]|11)-(?:0[1-9]|[12]\d|30)`,
  String.raw`2[01]\d\d-02-(?:0[1-9]|1\d|2[0-8])`,
  '(?:20(?:[02468][048]|[13579][26])|21(?:0[48]|[2468][048]|[13579][26]))-02-29',
].join('|');
const aDate = {
  max: 19,
  pattern: new RegExp(String.raw`^(?:${aDay})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d$`),
  patternHint:
    'a real date and time in the years 2000 to 2199 as YYYY-MM-DDTHH:MM:SS, such as 2026-10-01T00:00:00, without a zone',
};
const aMonth = {
  max: 7,
  pattern: /^2[01]\d\d-(?:0[1-9]|1[0-2])$/,
  patternHint: 'a month in the years 2000 to 2199 as YYYY-MM, such as 2026-10',
};

/** `timezone` left out or empty means `utc`. */
class InTimezone {
  @Transform(({ value }: { value: unknown }) => (value === '' ? undefined : value))
  @OneOf('BillingTimezone', billingTimezones, {
    optional: true,
    description: 'Zone of the dates: UTC, or that of the profile of the caller; utc if left out or empty.',
    example: 'utc',
  })
  timezone?: BillingTimezone;
}

/** Which time a report is of: from `start_date` up to and without `end_date`, wall-clock times in `timezone`. */
export class BillingRange extends InTimezone {
  @Text({
    ...aDate,
    example: '2026-10-01T00:00:00',
    description: 'Start of the range: wall-clock time, years 2000 to 2199.',
  })
  start_date!: string;

  @Text({
    ...aDate,
    example: '2026-11-01T00:00:00',
    description: 'End of the range, not part of it: wall-clock time, years 2000 to 2199.',
  })
  end_date!: string;

  @OneOf('BillingInterval', billingIntervals, { example: 'daily' })
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
  @NumberedId({ allow: ['all'], example: 'all', description: 'Id of the region, or all.' })
  region_id!: string;
}

export class TeamBillingQuery extends IntersectionType(OfTeam, BillingRange) {}
export class WorkspaceBillingQuery extends IntersectionType(OfWorkspace, BillingRange) {}
export class RegionalBillingQuery extends IntersectionType(OfTeam, BillingRange, InRegion) {}

/** Of the bus alone: for reports that are shown together, which are then counted up to one instant. */
class UpTo {
  @Instant({
    optional: true,
    decimals: 'milliseconds',
    description: 'Instant up to which running usage is counted, not in the future; the present if left out.',
  })
  as_of?: string;
}

export class TeamReportQuery extends IntersectionType(TeamBillingQuery, UpTo) {}
export class WorkspaceReportQuery extends IntersectionType(WorkspaceBillingQuery, UpTo) {}
export class RegionalReportQuery extends IntersectionType(RegionalBillingQuery, UpTo) {}

export class ComparisonPath extends OfTeam {
  @Text({ ...aMonth, example: '2026-09', description: 'First month: years 2000 to 2199.' })
  start_month!: string;

  @Text({ ...aMonth, example: '2026-10', description: 'Second month, later than `start_month`: years 2000 to 2199.' })
  end_month!: string;
}
export class ComparisonZone extends InTimezone {}
export class ComparisonQuery extends IntersectionType(ComparisonPath, ComparisonZone) {}
