import { isAppError } from './app-error.js';

/** What a caught value comes from, for operators: the cause of an AppError, whose own sentence is for callers. */
export function rootOf(error: unknown): unknown {
  return isAppError(error) && error.cause !== undefined ? error.cause : error;
}

/** What a caught value says, for people: the message of an error, or the value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
