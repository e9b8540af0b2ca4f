import { isAppError, redactSecrets } from '@atoll/errors';

const maxLength = 300;

/** What may be a value. */
const quoted = /"[^"]*"|'[^']*'/g;

/**
 * What failed, for a column that operators read: an AppError's own words, which hold no secret; of anything else its
 * name, its code, and its message with whatever may be a value taken out.
 */
export function describeError(error: unknown): string {
  if (isAppError(error)) return shorten(`${error.code}: ${error.message}`);
  if (!(error instanceof Error)) return 'A value that is not an Error was thrown.';
  const { code } = error as { code?: unknown };
  const message = redactSecrets(error.message).replace(quoted, '"…"');
  return shorten(`${error.name}${typeof code === 'string' ? ` ${code}` : ''}: ${message}`);
}

function shorten(text: string): string {
  // U+0000 cannot be stored.
  const printable = text.replaceAll('\0', '');
  return printable.length > maxLength ? `${printable.slice(0, maxLength)}…` : printable;
}
