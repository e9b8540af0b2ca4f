import { AppError } from '@atoll/errors';

/** A field that has the right form and cannot be accepted. `message` completes the field's name: `must be …`. */
export function invalidField(path: string, code: string, message: string): AppError {
  const sentence = `${path} ${message}`;
  return new AppError('invalid_input', sentence, { errors: [{ path, code, message: sentence }] });
}

/** A change that changes nothing is a mistake of the caller. */
export function requireSomeField(body: object, ...fields: string[]): void {
  const sent = body as Record<string, unknown>;
  if (fields.some((field) => sent[field] !== undefined)) return;
  throw new AppError('invalid_input', `At least one of these is needed: ${fields.join(', ')}.`, {
    errors: fields.map((path) => ({ path, code: 'someFieldNeeded', message: `${path} or another field is needed` })),
  });
}
