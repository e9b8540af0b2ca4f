import { requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import type { ServiceAnswer } from '@atoll/contracts/operator';
import { isAppError, type AppError } from '@atoll/errors';
import type { PlatformService } from '@atoll/service-names';

/** How long a service is waited for: what the others answer is not held back for longer. */
const patienceMs = 2_000;

export interface AnswersOfServices<Answer> {
  /** Those that came, in the order of the services. */
  readonly answers: readonly Answer[];
  readonly services: ServiceAnswer[];
}

/**
 * Asks several services the same question at once, for the operator. A service that is away, or that does not answer
 * within 2 s, is named with the reason and its answer left out. Throws AppError `forbidden` for anybody else, and what
 * a service refuses the question with.
 */
export async function askEach<Service extends PlatformService, Answer>(
  asked: readonly Service[],
  context: CallContext,
  ask: (service: Service, context: CallContext) => Promise<Answer>,
): Promise<AnswersOfServices<Answer>> {
  requirePlatformAdmin(context.caller);
  const hasty = { ...context, deadlineAtMs: Math.min(context.deadlineAtMs, Date.now() + patienceMs) };
  const found = await Promise.all(
    asked.map(async (service) => {
      try {
        return { service, answer: await ask(service, hasty) };
      } catch (error) {
        if (!isAway(error)) throw error;
        return { service, detail: error.message };
      }
    }),
  );
  return {
    answers: found.flatMap(({ answer }) => (answer === undefined ? [] : [answer])),
    services: found.map(({ service, detail = null }) => ({
      service,
      status: detail === null ? 'ok' : 'unavailable',
      detail,
    })),
  };
}

/** A fault inside of one service is its own affair too: the others are shown all the same. */
function isAway(error: unknown): error is AppError {
  return isAppError(error) && ['unavailable', 'deadline_exceeded', 'internal'].includes(error.code);
}
