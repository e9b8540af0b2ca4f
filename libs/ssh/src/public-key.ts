import { createHash, createPublicKey } from 'node:crypto';
import ssh2 from 'ssh2';

/** A public key as people hand it in. */
export interface PublicKey {
  /** `ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256`, … */
  readonly type: string;
  /** The key as it stands in `authorized_keys`, without a comment. */
  readonly line: string;
  readonly comment: string;
  /** `SHA256:…` as `ssh-keygen -l` shows it. */
  readonly fingerprint: string;
}

/** Why a key is not taken, a sentence that says what is. */
export class BadPublicKey extends Error {}

/** NIST SP 800-57 part 1, table 2: 128 bits of security from 3072 bits on. */
const minimumRsaBits = 3072;
const longestLine = 16_384;
const types: ReadonlySet<string> = new Set([
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
]);

/**
 * Reads one line of `authorized_keys`: type, key in base64, comment. Throws `BadPublicKey` for options before the key,
 * several lines, keys of other types (DSA, security keys, certificates), RSA under 3072 bits, and whatever is not a
 * key.
 */
export function parsePublicKey(text: string): PublicKey {
  const line = text.trim();
  if (line.length > longestLine) throw new BadPublicKey('The key is too long.');
  if (/[\r\n]/.test(line)) throw new BadPublicKey('Give one key on one line.');
  if (/PRIVATE KEY/.test(line))
    throw new BadPublicKey('This is a private key. Give the public one, from the file that ends in .pub.');
  const [type = '', body = '', ...comment] = line.split(/[ \t]+/);
  if (!types.has(type)) {
    throw new BadPublicKey(
      `Give a key of type ssh-ed25519, ecdsa-sha2-nistp256/384/521 or ssh-rsa, without options before it.`,
    );
  }
  const parsed = ssh2.utils.parseKey(`${type} ${body}`);
  if (parsed instanceof Error || parsed.type !== type)
    throw new BadPublicKey(`This is not a public key of type ${type}.`);
  const blob = parsed.getPublicSSH();
  if (blob.toString('base64') !== body) throw new BadPublicKey(`This is not a public key of type ${type}.`);
  if (type === 'ssh-rsa' && rsaBits(parsed.getPublicPEM()) < minimumRsaBits) {
    throw new BadPublicKey(`An RSA key must have at least ${minimumRsaBits} bits. Better: ssh-keygen -t ed25519`);
  }
  return { type, line: `${type} ${body}`, comment: comment.join(' '), fingerprint: fingerprintOf(blob) };
}

/** `SHA256:…`, as OpenSSH shows it (RFC 4648 base64 without padding), of a key in its wire form (RFC 4253 §6.6). */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

function rsaBits(pem: string): number {
  try {
    return createPublicKey(pem).asymmetricKeyDetails?.modulusLength ?? 0;
  } catch {
    return 0;
  }
}
