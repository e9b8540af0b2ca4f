import { isWellFormedApiKey } from '@atoll/api-keys';
import { AppError } from '@atoll/errors';
import { isSessionToken } from './session-tokens.js';

/** RFC 9110 has a space after the scheme; a tab is taken for one. */
const bearer = /^bearer[ \t]+(\S+)[ \t]*$/i;

/**
 * The one credential that a request presents, an API key or the access token of a session, from all its `Authorization`
 * and `x-api-key` headers; null where it has none of them. Reads the raw headers, since Node drops the second of two
 * `Authorization` headers. Throws `unauthenticated` for anything that can be neither, so that it is never looked up.
 */
export function presentedCredential(rawHeaders: readonly string[]): string | null {
  let presented: string | null = null;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const credential = credentialIn(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
    if (credential === null) continue;
    if (presented !== null && presented !== credential)
      throw unauthenticated('Two different credentials were sent; send one.');
    presented = credential;
  }
  if (presented === null || isWellFormedApiKey(presented) || isSessionToken(presented)) return presented;
  throw unauthenticated(
    'The credential does not have the form of an API key: atl_ and 38 letters and digits, with a checksum.',
  );
}

/** The credential in one header; null where the header is for something else. */
function credentialIn(name: string, value: string): string | null {
  // Only names of the right length are worth lower-casing.
  if (name.length === 13 && name.toLowerCase() === 'authorization')
    return bearer.exec(value)?.[1] ?? withoutScheme(value);
  if (name.length === 9 && name.toLowerCase() === 'x-api-key') return value.trim();
  return null;
}

function withoutScheme(value: string): never {
  const what = isWellFormedApiKey(value.trim())
    ? 'has the API key without its scheme'
    : 'has another form than Bearer <API_KEY>';
  throw unauthenticated(
    `The Authorization header ${what}. Send Authorization: Bearer <API_KEY>, or x-api-key: <API_KEY>.`,
  );
}

function unauthenticated(sentence: string): AppError {
  return new AppError('unauthenticated', sentence);
}
