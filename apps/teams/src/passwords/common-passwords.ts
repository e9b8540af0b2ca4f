import { invalidField } from '@atoll/errors';
import { dictionary } from '@zxcvbn-ts/language-common';

/** About 49,000 passwords from leaks, in lower case: MIT, part of zxcvbn-ts. */
const common: ReadonlySet<string> = new Set(dictionary['passwords-common']);

/** Digits and signs that people put behind a word to make it longer. */
const tail = /[\d\p{P}\p{S}]+$/u;
/** Shorter matches are ignored: the text after them is most of the password. */
const shortestStem = 4;

/** Throws `invalid_input` that names `field` for a password that is common, also with digits or signs behind it. */
export function refuseCommon(password: string, field: string): void {
  const text = password.normalize('NFKC').toLowerCase();
  const stem = text.replace(tail, '');
  const isStemCommon = stem.length >= shortestStem && common.has(stem);
  if (!common.has(text) && !isStemCommon) return;
  throw invalidField(
    field,
    'isCommonPassword',
    'must not be a common password, even with digits or symbols added at the end',
  );
}
