import { randomInt } from 'node:crypto';

/** Without vowels, so that they spell nothing. */
const letters = 'bcdfghjklmnpqrstvwxz';

/**
 * A name that is a DNS label where `name` is one of at most 57 characters: the name and five letters out of 3.2
 * million.
 */
export function podNameOf(name: string): string {
  return `${name}-${Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('')}`;
}
