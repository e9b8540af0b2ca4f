import { createHmac, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const prefix = 'atl_';
const randomLength = 32;
const checksumLength = 6;
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${randomLength + checksumLength}}$`);

/** CRC-32 (as in zlib) of everything before it, in base 62, six characters. Finds typing errors; it is no secret. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let position = 0; position < checksumLength; position++) {
    digits = alphabet.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** A new key: `atl_`, 32 random base-62 characters (190 bits), a checksum of 6. */
export function createApiKey(): string {
  const random = Array.from({ length: randomLength }, () => alphabet.charAt(randomInt(62))).join('');
  return prefix + random + checksum(prefix + random);
}

/** Whether a text can be a key at all: form and checksum. Says nothing about whether it opens anything. */
export function isWellFormedApiKey(text: string): boolean {
  return form.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength);
}

/**
 * What is stored and looked up instead of the key: HMAC-SHA-256 under the pepper, in hexadecimal. The key holds 190
 * random bits, so a slow password hash would add nothing; without the pepper a stolen table is worth nothing.
 */
export function digestApiKey(key: string, pepper: string): string {
  return createHmac('sha256', pepper).update(key).digest('hex');
}

/** How a key is shown after its creation: `atl_ab12…wxyz`. */
export function maskApiKey(key: string): string {
  return `${key.slice(0, prefix.length + 4)}…${key.slice(-4)}`;
}
