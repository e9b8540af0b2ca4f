import type { FieldError } from '@atoll/errors';

/** What is wrong with a field of the event at `index` of a batch. `message` completes the field's path. */
export function faultOf(index: number, field: string, message: string): FieldError {
  const path = `events.${index}.${field}`;
  return { path, code: field, message: `${path} ${message}` };
}
