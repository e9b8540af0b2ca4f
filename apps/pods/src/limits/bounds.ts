import type { CreatePod, IdleStop, PodLimits } from '@atoll/contracts/pods';
import { invalidInput, type FieldError } from '@atoll/errors';

/** Where an upper bound holds and nobody has said when a slice is idle. */
const idleBelowPercent = 5;

export const noLimits: PodLimits = {
  default_duration_minutes: null,
  longest_duration_minutes: null,
  default_idle_stop: null,
  longest_idle_minutes: null,
};

/** How long a pod may run and idle. */
export interface PodTerms {
  readonly maxDurationMinutes: number | null;
  readonly idleStop: IdleStop | null;
}

type Asked = Pick<CreatePod, 'max_duration_minutes' | 'idle_stop'>;

/**
 * The limits that hold for a team: its own defaults before the operator's, the lower one of two bounds, and no default
 * above its bound.
 */
export function together(operator: PodLimits, team: PodLimits): PodLimits {
  const longestDuration = lower(operator.longest_duration_minutes, team.longest_duration_minutes);
  const longestIdle = lower(operator.longest_idle_minutes, team.longest_idle_minutes);
  const unlessIdle = longestIdle === null ? null : { minutes: longestIdle, gpu_below_percent: idleBelowPercent };
  const duration = team.default_duration_minutes ?? operator.default_duration_minutes;
  return {
    default_duration_minutes: lower(duration, longestDuration),
    longest_duration_minutes: longestDuration,
    default_idle_stop: bounded(team.default_idle_stop ?? operator.default_idle_stop, longestIdle) ?? unlessIdle,
    longest_idle_minutes: longestIdle,
  };
}

/** The terms of a pod that is created. Throws `invalid_input` for what is above a bound. */
export function termsFor(asked: Asked, limits: PodLimits): PodTerms {
  const faults = [
    ...above('max_duration_minutes', asked.max_duration_minutes, limits.longest_duration_minutes),
    ...above('idle_stop.minutes', asked.idle_stop?.minutes, limits.longest_idle_minutes),
  ];
  if (faults.length > 0) throw invalidInput(faults);
  return boundedTerms(
    { maxDurationMinutes: asked.max_duration_minutes ?? null, idleStop: asked.idle_stop ?? null },
    limits,
  );
}

/** The terms of a pod that starts again, within what holds now. */
export function boundedTerms({ maxDurationMinutes, idleStop }: PodTerms, limits: PodLimits): PodTerms {
  return {
    maxDurationMinutes: lower(maxDurationMinutes ?? limits.default_duration_minutes, limits.longest_duration_minutes),
    idleStop: bounded(idleStop, limits.longest_idle_minutes) ?? limits.default_idle_stop,
  };
}

/** Throws `invalid_input` for a default above its own bound, and for a bound above that of the operator. */
export function requireConsistent(limits: PodLimits, operator: PodLimits = noLimits): void {
  const ofOperator = ', the operator’s bound';
  const { longest_duration_minutes: longestDuration, longest_idle_minutes: longestIdle } = together(operator, limits);
  const faults = [
    ...above(
      'longest_duration_minutes',
      limits.longest_duration_minutes,
      operator.longest_duration_minutes,
      ofOperator,
    ),
    ...above('longest_idle_minutes', limits.longest_idle_minutes, operator.longest_idle_minutes, ofOperator),
    ...above('default_duration_minutes', limits.default_duration_minutes, longestDuration),
    ...above('default_idle_stop.minutes', limits.default_idle_stop?.minutes, longestIdle),
  ];
  if (faults.length > 0) throw invalidInput(faults);
}

function above(
  path: string,
  value: number | null | undefined,
  bound: number | null,
  whose = ', the upper bound',
): FieldError[] {
  if (value === null || value === undefined || bound === null || value <= bound) return [];
  return [{ path, code: 'max', message: `${path} must be at most ${bound}${whose}` }];
}

/** The lower one of two that may be null, which is none. */
function lower(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

function bounded(idle: IdleStop | null, longestMinutes: number | null): IdleStop | null {
  return idle && { ...idle, minutes: lower(idle.minutes, longestMinutes) ?? idle.minutes };
}
