import { invalidInput, type FieldError } from '@atoll/errors';

/** A field that has the right form and cannot be accepted. `message` completes the field's name: `must be …`. */
export function fieldError(path: string, code: string, message: string): FieldError {
  return { path, code, message: `${path} ${message}` };
}

/** Throws `invalid_input` that names the faults; nothing where there are none. */
export function refuseFields(errors: FieldError[]): void {
  if (errors.length > 0) throw invalidInput(errors);
}
