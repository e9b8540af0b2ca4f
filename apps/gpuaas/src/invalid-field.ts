import { AppError } from '@atoll/errors';

/** A field that has the right form and cannot be accepted. `message` completes the field's name: `must be …`. */
export function invalidField(path: string, code: string, message: string): AppError {
  const sentence = `${path} ${message}`;
  return new AppError('invalid_input', sentence, { errors: [{ path, code, message: sentence }] });
}
