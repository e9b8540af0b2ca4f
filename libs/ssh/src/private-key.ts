import ssh2 from 'ssh2';

/** Why a private key is not accepted, as a sentence that says what is. Holds nothing of the key. */
export class BadPrivateKey extends Error {}

/** Throws `BadPrivateKey` for what is no private key, and for an encrypted one without its passphrase. */
export function checkPrivateKey(text: string, passphrase?: string): void {
  const parsed = ssh2.utils.parseKey(text, passphrase);
  if (parsed instanceof Error) {
    if (/no passphrase given/.test(parsed.message))
      throw new BadPrivateKey('The private key is encrypted. Give its passphrase.');
    if (/bad passphrase|decrypt/i.test(parsed.message))
      throw new BadPrivateKey('The passphrase does not open the private key.');
    throw new BadPrivateKey('This is not a private key in OpenSSH or PEM form.');
  }
  const [key] = [parsed].flat();
  if (!key?.isPrivateKey()) throw new BadPrivateKey('This is a public key. Give the private one.');
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
