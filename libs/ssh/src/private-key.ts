import ssh2 from 'ssh2';

/** Why a private key is not accepted, as a sentence that says what is. Holds nothing of the key. */
export class BadPrivateKey extends Error {}

/** Throws `BadPrivateKey` for what is no private key, and for an encrypted one without its passphrase. */
export function checkPrivateKey(text: string, passphrase?: string): void {
  const parsed = ssh2.utils.parseKey(text, passphrase);
  if (parsed instanceof Error) {
    if (/no passphrase given/.test(parsed.message)) throw new BadPrivateKey('The private key is encrypted. Give its passphrase.');
    if (/bad passphrase|decrypt/i.test(parsed.message)) throw new BadPrivateKey('The passphrase does not open the private key.');
    throw new BadPrivateKey('This is not a private key in OpenSSH or PEM form.');
  }
  const [key] = [parsed].flat();
  if (!key?.isPrivateKey()) throw new BadPrivateKey('This is a public key. Give the private one.');
}

/** A new ed25519 key pair: the public key as a line of `authorized_keys` without a comment, the private key in OpenSSH form. */
export function generateKeyPair(): { publicKey: string; privateKey: string } {
  const { public: line, private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519');
  return { publicKey: line.trim().split(' ').slice(0, 2).join(' '), privateKey };
}
