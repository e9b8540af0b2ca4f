import { randomUUID } from 'node:crypto';
import type { CallContext } from '@atoll/contracts';

/** How long a service that acts by itself waits for an answer unless it says otherwise. */
const defaultDeadlineMs = 15_000;

export interface SystemContextOptions extends Partial<Pick<CallContext, 'traceparent' | 'idempotency'>> {
  /** That of the request for which the call is made; a new one where there is none. */
  requestId?: string | null;
  /** From now on; 15 s unless given. */
  deadlineMs?: number;
}

/** The context of a call that a service makes by itself: from a relay, a timer, a start. */
export function systemContext(service: string, options: SystemContextOptions = {}): CallContext {
  const { deadlineMs = defaultDeadlineMs, requestId, ...rest } = options;
  return {
    ...rest,
    requestId: requestId ?? randomUUID(),
    deadlineAtMs: Date.now() + deadlineMs,
    caller: { kind: 'system', service },
  };
}

/** Milliseconds until nobody waits for the answer any more; 0 once the deadline has passed. */
export function remainingMs(context: CallContext): number {
  return Math.max(0, context.deadlineAtMs - Date.now());
}
