import type { LogInOutcome } from '@atoll/session-tab';
import { problemOf, problemOfCall } from '../../api/problem.js';

/** Throws a `Problem` if the log-in was refused. Returns the ticket if a second factor is required. */
export async function ticketOf(asked: Promise<LogInOutcome>): Promise<string | null> {
  const outcome = await asked.catch((error: unknown) => {
    throw problemOfCall(error);
  });
  if (outcome.kind === 'refused') throw problemOf(outcome.response, outcome.body);
  return outcome.kind === 'second_factor' ? outcome.ticket : null;
}
