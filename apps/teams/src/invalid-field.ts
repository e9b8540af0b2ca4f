import { AppError, invalidInput, type FieldError } from '@atoll/errors';

/** A field that has the right form and cannot be accepted. `message` completes the field's name: `must be …`. */
export function fieldError(path: string, code: string, message: string): FieldError {
  return { path, code, message: `${path} ${message}` };
}

/** Throws `invalid_input` that names the faults; nothing where there are none. */
export function refuseFields(errors: FieldError[]): void {
  if (errors.length > 0) throw invalidInput(errors);
}

/** Throws `invalid_input` for a change that changes nothing. */
export function requireSomeField(body: object, ...fields: string[]): void {
  const sent = body as Record<string, unknown>;
  if (fields.some((field) => sent[field] !== undefined)) return;
  throw new AppError('invalid_input', `At least one of these is needed: ${fields.join(', ')}.`, {
    errors: fields.map((path) => ({ path, code: 'someFieldNeeded', message: `${path} or another field is needed` })),
  });
}
