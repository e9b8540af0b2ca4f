import { AppError, type FieldError } from './app-error.js';

/**
 * Refuses a request for its faults, at least one, each listed in `details.errors`, of which callers see the first 100.
 * The message states the first one with the whole path of its field, and how many there are:
 * `members.0.email must be … (the first of 3 faults).`
 */
export function invalidInput(faults: readonly FieldError[]): AppError {
  const [first] = faults;
  const count = faults.length > 1 ? ` (the first of ${faults.length} faults)` : '';
  return new AppError('invalid_input', `${first ? sentenceOf(first) : 'The input is not valid'}${count}.`, {
    errors: [...faults],
  });
}

/**
 * Refuses one field that has the right form and cannot be accepted. `message` completes the name of the field, as in
 * `must be …`; its full stop may be left out.
 */
export function invalidField(path: string, code: string, message: string): AppError {
  return invalidInput([{ path, code, message: `${path} ${message.replace(/\.$/, '')}` }]);
}

/** A message begins with the name of its field: here with the path to it. */
function sentenceOf({ path, message }: FieldError): string {
  if (message.includes(path)) return message;
  const name = path.slice(path.lastIndexOf('.') + 1);
  return message.startsWith(`${name} `) ? `${path}${message.slice(name.length)}` : `${path}: ${message}`;
}

/** Throws `invalid_input` for a change that changes nothing. */
export function requireSomeField(body: object, ...fields: string[]): void {
  const sent = body as Record<string, unknown>;
  if (fields.some((field) => sent[field] !== undefined)) return;
  throw new AppError('invalid_input', `At least one of these is needed: ${fields.join(', ')}.`, {
    errors: fields.map((path) => ({ path, code: 'someFieldNeeded', message: `${path} or another field is needed` })),
  });
}
