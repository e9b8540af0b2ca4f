import { hkdfSync } from 'node:crypto';

/**
 * 32 bytes by which one pepper is distinguished from another (HKDF-SHA-256, RFC 5869), and which reveal nothing else of
 * it.
 */
export function fingerprintOfPepper(pepper: string): Buffer {
  return Buffer.from(hkdfSync('sha256', pepper, '', 'atoll fingerprint of the pepper', 32));
}
