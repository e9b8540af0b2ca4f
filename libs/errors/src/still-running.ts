import { AppError, isAppError } from './app-error.js';

const message = 'A request with this Idempotency-Key is still running.';

/** The refusal of a call of which another one with the same `Idempotency-Key` has not ended: `conflict`. */
export function stillRunning(): AppError {
  return new AppError('conflict', message);
}

/** Whether it is that refusal, also where it came over the bus: what it refused is being done by the other call. */
export function isStillRunning(error: unknown): boolean {
  return isAppError(error) && error.code === 'conflict' && error.message === message;
}
