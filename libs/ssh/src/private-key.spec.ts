import { expect, it } from '@jest/globals';
import ssh2 from 'ssh2';
import { BadPrivateKey, checkPrivateKey, generateKeyPair, openPrivateKey } from './private-key.js';
import { parsePublicKey } from './public-key.js';

it('each key pair that is made can be read again, also where a half begins with a zero byte', () => {
  for (let made = 0; made < 1_500; made += 1) {
    const { publicKey, privateKey } = generateKeyPair();
    expect(parsePublicKey(publicKey).line).toBe(publicKey);
    checkPrivateKey(privateKey);
  }
});

/** A key in the form of OpenSSH (PROTOCOL.key) whose passphrase takes so many rounds; nothing is encrypted. */
function withRounds(rounds: number, ...publicFields: string[]): string {
  const number = (value: number) => Buffer.from(value.toString(16).padStart(8, '0'), 'hex');
  const text = (value: string | Buffer) => Buffer.concat([number(value.length), Buffer.from(value)]);
  const kdf =
    rounds === 0 ? ['none', 'none', ''] : ['aes256-ctr', 'bcrypt', Buffer.concat([text('salt'), number(rounds)])];
  const publicKey = Buffer.concat(publicFields.map(text));
  const secret = Buffer.concat([number(1), number(1), ...publicFields.map(text), ...Array<Buffer>(5).fill(text(''))]);
  const body = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    ...kdf.map(text),
    number(1),
    text(publicKey),
    text(secret),
  ]);
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${body.toString('base64')}\n-----END OPENSSH PRIVATE KEY-----`;
}

it('a key whose passphrase would take long is refused, untried', () => {
  for (const rounds of [101, 2 ** 32 - 1]) {
    const key = withRounds(rounds, 'ssh-ed25519', 'x'.repeat(32));
    expect(() => checkPrivateKey(key, 'x')).toThrow('ssh-keygen -p -a 24');
  }
});

it('an RSA key without a modulus is no private key', () => {
  expect(() => checkPrivateKey(withRounds(0, 'ssh-rsa', '', ''))).toThrow(BadPrivateKey);
});

/** Quick to open. ssh2 makes some that it cannot read. */
function encrypted(passphrase: string): string {
  for (;;) {
    const encryption = { passphrase, cipher: 'aes256-ctr', rounds: 1 };
    const { private: key } = ssh2.utils.generateKeyPairSync('ed25519', encryption);
    if (!(ssh2.utils.parseKey(key, passphrase) instanceof Error)) return key;
  }
}

it('an encrypted key is opened once, whatever was opened by another passphrase', () => {
  const [one, other] = [encrypted('secret'), encrypted('secret')];
  const key = openPrivateKey(one, 'secret');
  expect(key.isPrivateKey()).toBe(true);
  expect(openPrivateKey(one, 'secret')).toBe(key);
  expect(openPrivateKey(other, 'secret')).not.toBe(key);
  expect(() => openPrivateKey(one, 'other')).toThrow('Cannot parse privateKey');
  expect(() => openPrivateKey(one)).toThrow('Cannot parse privateKey');
});
