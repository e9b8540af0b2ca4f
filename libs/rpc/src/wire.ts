import { AppError } from '@atoll/errors';
import { Json, type JsonText } from './json.js';

/** Largest request: what fits NATS' usual 1 MiB with room for the context. */
export const maxRequestBytes = 960 * 1024;
/** Largest answer. */
export const maxReplyBytes = 64 * 1024 * 1024;
/** All that a caller learns about a bug. */
export const internalMessage = 'Something went wrong on our side.';

/** Serializes a value for the wire. Throws if it has no JSON: a BigInt, a cycle, undefined. */
export function encode(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new TypeError('Only an object can be sent.');
  return json;
}

/** As `encode`, of an answer: what is JSON already stays in its parts. */
export function encodeAnswer(value: unknown): JsonText {
  return value instanceof Json ? value.parts : encode(value);
}

/** The error that tells of an answer beyond the limit, or undefined. */
export function answerTooLarge(bytes: number): AppError | undefined {
  if (bytes <= maxReplyBytes) return undefined;
  return new AppError('internal', `The response would be larger than ${maxReplyBytes / 1024 / 1024} MiB.`);
}

export function unreadableAnswer(): AppError {
  return new AppError('internal', 'The response of a service could not be read.');
}

export function deadlineExceeded(): AppError {
  return new AppError('deadline_exceeded', 'The service did not respond in time.');
}

export function unavailable(service: string): AppError {
  return new AppError('unavailable', `The service ${service} is not available at the moment.`, {
    retryAfterSeconds: 1,
  });
}

/** The caller's error if a service that is not upgraded yet does not know a field. */
export function olderRelease(service: string, field: string): AppError {
  const message = `The service ${service} is of an older release that does not know the field ${field}. It is being upgraded.`;
  return new AppError('unavailable', message, { retryAfterSeconds: 10 });
}
