import { applyDecorators } from '@nestjs/common';
import { IntersectionType } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { NumberedId, OneOf, TeamPath, Text } from '@atoll/contracts';
import { billingIntervals, type BillingInterval } from '@atoll/contracts/billing';
import { WorkspacePath } from '@atoll/contracts/teams';

/** Wall-clock times as old clients write them: to the day, to the minute, to the second. */
const forms = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d))?)?$/;
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

const hint = 'a date as YYYY-MM-DD, YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS';
/** The form after transformation; the billing service rejects dates that do not exist. */
const wholeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/;

/** Of a wall-clock time that is read as if in UTC, for what comes so much later; as it is where it is no real time. */
function later(text: string, ms: number): string {
  const date = new Date(`${text}Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 19) !== text) return text;
  return new Date(date.getTime() + ms).toISOString().slice(0, 19);
}

/** The start of a range in the form of the main API. Unknown forms stay unchanged. */
export function startOf(text: string): string {
  const [, day, minute = '00:00', second = '00'] = forms.exec(text) ?? [];
  return day === undefined ? text : `${day}T${minute}:${second}`;
}

/**
 * The end of a range as the main API has it: one that says minute 59 and no second means to the end of that minute, as
 * clients end a month.
 */
export function endOf(text: string): string {
  const [, , minute, second] = forms.exec(text) ?? [];
  const isLastMinute = minute?.endsWith(':59') && second === undefined;
  return isLastMinute ? later(startOf(text), minuteMs) : startOf(text);
}

/** As `endOf`, where a day is meant to its end. */
export function endOfDay(text: string): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) ? later(startOf(text), dayMs) : endOf(text);
}

/** A wall-clock time in a request, which `read` turns into the form of the main API. */
export function OldTime(
  read: (text: string) => string,
  description: string,
  { optional = false } = {},
): PropertyDecorator {
  return applyDecorators(
    Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? read(value) : value)),
    Text({ max: 40, optional, pattern: wholeForm, patternHint: hint, example: '2026-10-01T00:00', description }),
  );
}

const lowerCase = ({ value }: { value: unknown }): unknown => (typeof value === 'string' ? value.toLowerCase() : value);

class OldTimes {
  @OldTime(startOf, 'Start of the range: wall-clock time.')
  start_date!: string;

  @OldTime(
    endOf,
    'End of the range, not part of it: wall-clock time. With minute 59 and no second, the end of that minute.',
  )
  end_date!: string;
}

class OldInterval {
  @Transform(lowerCase)
  @OneOf('OldInterval', billingIntervals, { example: 'daily', description: 'Length of the intervals.' })
  interval!: BillingInterval;
}

export class TeamTimes extends IntersectionType(TeamPath, OldTimes) {}
export class TeamRange extends IntersectionType(TeamTimes, OldInterval) {}
export class WorkspaceRange extends IntersectionType(WorkspacePath, OldTimes, OldInterval) {}

export class OldZone {
  @Transform(({ value }: { value: unknown }) => (value === '' ? undefined : lowerCase({ value })))
  @OneOf('OldTimezone', ['utc', 'local'], {
    optional: true,
    description: 'Zone of the times, in any case: utc, or local, that of the caller.',
  })
  timezone?: 'utc' | 'local';
}

export class OldZoneAndRegion extends OldZone {
  @NumberedId({ optional: true, allow: ['all'], example: 'all', description: 'Id of the region, or all.' })
  region_id?: string;
}
