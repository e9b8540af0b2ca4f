import { AppError, isAppError } from './app-error.js';

const message = 'A request with this Idempotency-Key is still running.';

/** The refusal of a call of which another one with the same `Idempotency-Key` has not ended: `conflict`. */
export function stillRunning(): AppError {
  return new AppError('conflict', message);
}

/** Whether it is this refusal, even if it came over the bus: the other call is doing the work. */
export function isStillRunning(error: unknown): boolean {
  return isAppError(error) && error.code === 'conflict' && error.message === message;
}
