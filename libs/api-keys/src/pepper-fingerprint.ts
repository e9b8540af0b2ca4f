import { derivedKey } from './derived-key.js';

/** 32 bytes by which one pepper is distinguished from another, and which reveal nothing else of it. */
export function fingerprintOfPepper(pepper: string): Buffer {
  return derivedKey(pepper, 'fingerprint of the pepper');
}
