import { isAppError } from '@atoll/errors';

const maxLength = 300;

/** Keys of the platform, credentials in URLs, and anything in quotes that may be a value. */
const secrets: readonly [RegExp, string][] = [
  [/atl_[0-9A-Za-z]+/g, 'atl_…'],
  // Begins where a word does: tried from within one, a long word would cost the square of its length.
  [/(?<!\w)(\w+:\/\/)[^\s/@]*@/g, '$1…@'],
  [/"[^"]*"|'[^']*'/g, '"…"'],
];

/**
 * What failed, for a column that operators read: an AppError's own words, which hold no secret; of anything else its
 * name, its code, and its message with whatever may be a value taken out.
 */
export function describeError(error: unknown): string {
  if (isAppError(error)) return shorten(`${error.code}: ${error.message}`);
  if (!(error instanceof Error)) return 'A value that is not an Error was thrown.';
  const { code } = error as { code?: unknown };
  const message = secrets.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), error.message);
  return shorten(`${error.name}${typeof code === 'string' ? ` ${code}` : ''}: ${message}`);
}

function shorten(text: string): string {
  // U+0000 cannot be stored.
  const printable = text.replaceAll('\0', '');
  return printable.length > maxLength ? `${printable.slice(0, maxLength)}…` : printable;
}
