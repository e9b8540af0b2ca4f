import { hkdfSync } from 'node:crypto';

/** A key of 32 bytes for one purpose only, derived from the server's pepper (HKDF-SHA-256, RFC 5869). */
export function derivedKey(pepper: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', pepper, '', `atoll ${purpose}`, 32));
}
