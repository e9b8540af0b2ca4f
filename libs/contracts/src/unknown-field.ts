import type { FieldError } from '@atoll/errors';

/** The code of a fault that is a field which the class does not declare. */
export const unknownFieldCode = 'unknownField';
/** What an unknown field may add to a message. */
const maxPathLength = 200;

export function unknownField(path: string): FieldError {
  const shown = shownPath(path);
  return { path: shown, code: unknownFieldCode, message: `${shown} is not a known field` };
}

/** A path of which parts may come from outside, as it may be shown. */
export function shownPath(path: string): string {
  return path.slice(0, maxPathLength);
}
