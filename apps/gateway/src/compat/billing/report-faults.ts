import { type FieldError } from '@atoll/errors';
import type { ToldAs } from '../http/old-faults.js';

/** For a call that has other words for fields and for intervals, by those of the main API. */
export function inWords(words: ReadonlyMap<string, string>): ToldAs {
  return ({ path, code, message }) => ({
    path: words.get(path) ?? path,
    code,
    message: message.replaceAll(/\b[a-z_]+\b/g, (word) => words.get(word) ?? word),
  });
}

/** For a call whose caller chooses no interval. */
export function withoutInterval({ path, code, message }: FieldError): FieldError {
  if (path !== 'interval') return { path, code, message: message.replace(/ where interval is [a-z]+$/, '') };
  return { path: 'end_date', code, message: message.replace(/^[^:]*/, 'end_date must be earlier') };
}
