import type { LogInOutcome } from '@atoll/session-tab';
import { Problem } from '../../api/problem.js';

/** Throws a `Problem` where it was refused. Gives back the ticket of a second factor where one is wanted. */
export function ticketOf(outcome: LogInOutcome): string | null {
  if (outcome.kind === 'refused') throw new Problem(outcome.status, 'refused', outcome.message, null);
  return outcome.kind === 'second_factor' ? outcome.ticket : null;
}
