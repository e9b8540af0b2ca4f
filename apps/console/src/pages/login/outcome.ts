import type { LogInOutcome } from '@atoll/session-tab';
import { problemOf } from '../../api/problem.js';

/** Throws a `Problem` where it was refused. Gives back the ticket of a second factor where one is wanted. */
export function ticketOf(outcome: LogInOutcome): string | null {
  if (outcome.kind === 'refused') throw problemOf(outcome.response, outcome.body);
  return outcome.kind === 'second_factor' ? outcome.ticket : null;
}
