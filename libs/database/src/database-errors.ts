import { AppError, isAppError } from '@atoll/errors';

/**
 * Client-side failures that have no code. pg and pg-pool tell them apart by their sentences only.
 * The socket is gone, or holds an answer that nobody waits for any more.
 */
const lostMessages: ReadonlySet<string> = new Set([
  'Query read timeout',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'timeout expired',
]);

const unavailableMessages: ReadonlySet<string> = new Set([
  // The pool is exhausted.
  'timeout exceeded when trying to connect',
  // The process is shutting down.
  'Cannot use a pool after calling end on the pool',
  'Driver not Connected',
]);

const networkCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
]);

/**
 * PostgreSQL's answers after which a connection is of no use: read-only (a primary that stepped down), a transaction
 * left idle, shutdown, crash, 08*.
 */
const lostStates = /^(08...|25006|25P0[34]|57P0[1-5])$/;

/**
 * Answers that are not the caller's doing and pass: no more connections, disk or memory full, a statement over its
 * time, a refused login.
 */
const unavailableStates = /^(53...|57014|58...|28...|3D000|55P03)$/;

/** Of connections that could not be made. */
const refusals = new WeakSet<object>();

/**
 * Has the error of a connection that could not be made count as an outage, whatever it says: the process may have no
 * file descriptor left, or the certificate of the server may have expired.
 */
export function markRefusal(error: Error): void {
  refusals.add(error);
}

/**
 * Whether the whole transaction may be tried again: after a serialization failure, a deadlock, or a migration that has
 * changed a table since a statement was prepared.
 */
export function isRetryable(error: unknown): boolean {
  const code = errorCodeOf(error);
  return code === '40001' || code === '40P01' || isOutdated(error);
}

/**
 * Whether a migration has changed what a prepared statement returns. PostgreSQL has no code for that alone, and its
 * sentence is in the language of the server: what stays the same is where in the server it is thrown.
 */
export function isOutdated(error: unknown): boolean {
  const { routine } = (driverError(error) ?? {}) as { routine?: unknown };
  return errorCodeOf(error) === '0A000' && routine === 'RevalidateCachedQuery';
}

/** Whether the connection that this error came from must not be used again. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCodeOf(error);
  if (code !== undefined) return lostStates.test(code) || networkCodes.has(code);
  return lostMessages.has(messageOf(error));
}

/** What is saved. Throws `conflict` with the sentence where a unique constraint or index refuses the row. */
export async function unique<T>(saving: Promise<T>, sentence: string): Promise<T> {
  try {
    return await saving;
  } catch (error) {
    throw errorCodeOf(error) === '23505' ? new AppError('conflict', sentence) : error;
  }
}

/**
 * Whether PostgreSQL gave up a statement because it took too long, also where this is the cause of an AppError. For a
 * read that is large by itself: to repeat it as it is does not help.
 */
export function isStatementTimeout(error: unknown): boolean {
  return errorCodeOf(isAppError(error) ? error.cause : error) === '57014';
}

/**
 * The AppError that stands for a failure of the database itself: `unavailable`, with the time after which to come
 * again. Everything else (a broken constraint, a bug, an AppError) is given back as it came.
 */
export function toAppError(error: unknown): unknown {
  if (isAppError(error)) return error;
  const code = errorCodeOf(error);
  if (isRetryable(error)) {
    return new AppError(
      'unavailable',
      'Too many changes at once to the same data. Please try again.',
      { retryAfterSeconds: 1 },
      { cause: error },
    );
  }
  if (
    isConnectionLost(error) ||
    refusals.has(driverError(error) as object) ||
    (code !== undefined ? unavailableStates.test(code) : unavailableMessages.has(messageOf(error)))
  ) {
    return new AppError('unavailable', 'The database is unavailable.', { retryAfterSeconds: 2 }, { cause: error });
  }
  return error;
}

/** Whether the database, or a service, did not answer: not the fault of what was tried. */
export function isOutage(error: unknown): boolean {
  const known = toAppError(error);
  return isAppError(known) && known.code === 'unavailable';
}

/** SQLSTATE, or the code of a network error. */
export function errorCodeOf(error: unknown): string | undefined {
  const code = (driverError(error) as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function messageOf(error: unknown): string {
  const cause = driverError(error);
  return cause instanceof Error ? cause.message : '';
}

/** TypeORM wraps what pg throws. */
function driverError(error: unknown): unknown {
  return (error as { driverError?: unknown } | undefined)?.driverError ?? error;
}
