import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
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
/** What OpenSSL, and so OpenSSH, works with at most: OPENSSL_RSA_MAX_MODULUS_BITS. */
const maximumRsaBits = 16_384;
const longestLine = 16_384;
/** Base64 of an RSA key of 16384 bits has 2,764 characters. */
const longestBody = 2_800;
const types: ReadonlySet<string> = new Set([
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
]);

/**
 * Reads one line of `authorized_keys`: type, key in base64, comment. Throws `BadPublicKey` for options before the key,
 * several lines, keys of other types (DSA, security keys, certificates), RSA under 3072 or over 16384 bits, and
 * whatever is not a key. So a line has 2,800 characters at most.
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
  const { key, blob } = readKey(type, body) ?? {};
  if (!key || blob?.toString('base64') !== body) throw new BadPublicKey(`This is not a public key of type ${type}.`);
  if (type === 'ssh-rsa') requireBits(key);
  // Whatever a type may carry beside its numbers, such as an exponent without end.
  if (body.length > longestBody) throw new BadPublicKey('The key is too long.');
  return { type, line: `${type} ${body}`, comment: comment.join(' '), fingerprint: fingerprintOf(blob) };
}

/** `SHA256:…`, as OpenSSH shows it (RFC 4648 base64 without padding), of a key in its wire form (RFC 4253 §6.6). */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** Undefined for what is no key: an RSA key without a modulus, for which ssh2 throws, or a point on no curve. */
function readKey(type: string, body: string): { key: KeyObject; blob: Buffer } | undefined {
  try {
    const parsed = ssh2.utils.parseKey(`${type} ${body}`);
    if (parsed instanceof Error || parsed.type !== type) return undefined;
    const key = createPublicKey(parsed.getPublicPEM());
    // Throws for the point at infinity, which is a key to OpenSSL: anybody can sign for it.
    key.export({ format: 'jwk' });
    return { key, blob: parsed.getPublicSSH() };
  } catch {
    return undefined;
  }
}

function requireBits({ asymmetricKeyDetails }: KeyObject): void {
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  if (bits < minimumRsaBits)
    throw new BadPublicKey(`An RSA key must have at least ${minimumRsaBits} bits. Better: ssh-keygen -t ed25519`);
  if (bits > maximumRsaBits) throw new BadPublicKey(`An RSA key may have ${maximumRsaBits} bits at most.`);
}
