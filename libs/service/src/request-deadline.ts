import { WholeNumber } from '@atoll/contracts';

export const defaultDeadlineMs = 5_000;

/** How long a request may take in all, in milliseconds: `ATOLL_DEADLINE_MS` of the gateway and of every service. */
export function RequestDeadline(): PropertyDecorator {
  return WholeNumber({ min: 100, max: 300_000, unit: 'milliseconds' });
}
