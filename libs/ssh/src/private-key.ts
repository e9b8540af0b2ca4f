import { createHash } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';

/** Why a private key is not accepted, as a sentence that says what is. Holds nothing of the key. */
export class BadPrivateKey extends Error {}

/**
 * Of bcrypt, by which a passphrase opens a key in OpenSSH form: ssh2 does nothing else meanwhile, for 10 to 25 ms a
 * round. `ssh-keygen` takes 24 unless told otherwise.
 */
const mostRounds = 100;
/** More keys than a platform has hosts with keys of their own. */
const mostOpened = 1_000;
/** Encrypted keys that were opened, by a digest, the one used last at the end: each connection to a host needs one. */
const opened = new Map<string, ParsedKey>();

/**
 * Throws `BadPrivateKey` for what is no private key, and for an encrypted one without its passphrase or with too many
 * rounds.
 */
export function checkPrivateKey(text: string, passphrase?: string): void {
  if (roundsOf(text) > mostRounds)
    throw new BadPrivateKey(
      `The private key has more than ${mostRounds} rounds for its passphrase. Write it anew: ssh-keygen -p -a 24 -f <file>`,
    );
  const parsed = parse(text, passphrase);
  if (parsed instanceof Error) {
    if (/no passphrase given/.test(parsed.message))
      throw new BadPrivateKey('The private key is encrypted. Give its passphrase.');
    if (/bad passphrase|decrypt/i.test(parsed.message))
      throw new BadPrivateKey('The passphrase does not open the private key.');
    throw new BadPrivateKey('This is not a private key in OpenSSH or PEM form.');
  }
  if (!parsed.isPrivateKey()) throw new BadPrivateKey('This is a public key. Give the private one.');
}

/** A private key, of which `checkPrivateKey` is the check. Throws for what it cannot open. */
export function openPrivateKey(text: string, passphrase?: string): ParsedKey {
  const name = createHash('sha256')
    .update(JSON.stringify([text, passphrase]))
    .digest('base64');
  const known = opened.get(name);
  const parsed = known ?? parse(text, passphrase);
  if (parsed instanceof Error) throw new Error(`Cannot parse privateKey: ${parsed.message}`);
  if (passphrase !== undefined) {
    opened.delete(name);
    opened.set(name, parsed);
    const [oldest] = opened.keys();
    if (opened.size > mostOpened && oldest !== undefined) opened.delete(oldest);
  }
  return parsed;
}

/** ssh2 also throws, as for an RSA key without a modulus. */
function parse(text: string, passphrase: string | undefined): ParsedKey | Error {
  try {
    const parsed = ssh2.utils.parseKey(text, passphrase);
    return [parsed].flat()[0] ?? new Error('Unsupported key format');
  } catch (cause) {
    return new Error('Unsupported key format', { cause });
  }
}

/** 0 for a key that has none. After its magic come cipher, kdf and what the kdf takes: the salt and the rounds. */
function roundsOf(text: string): number {
  const [, body = ''] = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]*)-----END/.exec(text) ?? [];
  const afterMagic = Buffer.from(body, 'base64').subarray('openssh-key-v1\0'.length);
  try {
    const kdfOptions = fieldAt(fieldAt(afterMagic).after).after;
    const { field } = fieldAt(kdfOptions);
    return field.length === 0 ? 0 : fieldAt(field).after.readUInt32BE(0);
  } catch {
    return 0;
  }
}

/** A field of SSH (RFC 4251, 5) and what comes after it. Throws for a length that is cut off. */
function fieldAt(bytes: Buffer): { field: Buffer; after: Buffer } {
  const end = 4 + bytes.readUInt32BE(0);
  return { field: bytes.subarray(4, end), after: bytes.subarray(end) };
}

export interface KeyPair {
  /** A line of `authorized_keys` without a comment. */
  readonly publicKey: string;
  /** In OpenSSH form, encrypted where a passphrase is given. */
  readonly privateKey: string;
}

/**
 * A new ed25519 key pair. ssh2 1.17 loses a leading zero byte of either half, in one pair of 128: such a pair is thrown
 * away.
 */
export function generateKeyPair(passphrase?: string): KeyPair {
  const encryption = passphrase === undefined ? undefined : { passphrase, cipher: 'aes256-ctr', rounds: 16 };
  for (;;) {
    const { public: line, private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519', encryption);
    const isWhole = [ssh2.utils.parseKey(line), ssh2.utils.parseKey(privateKey, passphrase)].every(
      (key) => !(key instanceof Error),
    );
    if (isWhole) return { publicKey: line.trim().split(' ').slice(0, 2).join(' '), privateKey };
  }
}
