import { AppError } from './app-error.js';

/** Why a caller is refused that asks for more at once, or more often, than it may; the wait is in whole seconds. */
export function tooManyRequests(retryAfterSeconds: number): AppError {
  return new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds });
}
