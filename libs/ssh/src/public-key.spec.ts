import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { generateKeyPair } from './private-key.js';
import { BadPublicKey, parsePublicKey } from './public-key.js';

/** As ssh-keygen wrote them. */
const [ed25519 = '', ecdsa256 = '', ecdsa521 = '', rsa3072 = '', rsa2048 = ''] = readFileSync(
  new URL('./public-keys-fixture.pub', import.meta.url),
  'utf8',
).split('\n');

/** A key of these fields in its wire form (RFC 4253, 6.6). */
function lineOf(type: string, ...fields: (string | Uint8Array)[]): string {
  const parts = [type, ...fields].map((field) => {
    const [length, part] = [Buffer.alloc(4), Buffer.from(field)];
    length.writeUInt32BE(part.length);
    return Buffer.concat([length, part]);
  });
  return `${type} ${Buffer.concat(parts).toString('base64')}`;
}

/** An RSA key that nobody has: `size` bytes of modulus. */
function inventedRsa(size: number, exponent = Buffer.from([1, 0, 1])): string {
  return lineOf('ssh-rsa', exponent, Buffer.concat([Buffer.from([0]), Buffer.alloc(size, 0xc5)]));
}

describe('a public key', () => {
  it('of each strong type is taken, with its fingerprint and comment', () => {
    for (const line of [ed25519, ecdsa256, ecdsa521, rsa3072, inventedRsa(2048)]) {
      const parsed = parsePublicKey(`  ${line}\n`);
      expect(line).toContain(parsed.line);
      expect(parsed.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    }
    expect(parsePublicKey(ed25519).comment).toBe('ada@laptop');
  });

  it('has the fingerprint that ssh-keygen shows', () => {
    const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github.com';
    expect(parsePublicKey(line).fingerprint).toBe('SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU');
  });

  it('that is weak, malformed or not a public key is refused, with what is taken', () => {
    const { privateKey } = generateKeyPair();
    const [type, body = ''] = ed25519.split(' ');
    const bad = {
      [rsa2048]: 'at least 3072 bits',
      [inventedRsa(2049)]: '16384 bits at most',
      [inventedRsa(384, Buffer.alloc(2_000, 1))]: 'too long',
      [privateKey]: 'one line',
      [privateKey.replaceAll('\n', ' ')]: 'private key',
      [`command="rm" ${ed25519}`]: 'without options',
      [`${ed25519}\n${ed25519}`]: 'one line',
      [`${type} ${body.slice(0, -8)}`]: 'not a public key',
      [`ssh-rsa ${body}`]: 'not a public key',
      [lineOf('ssh-rsa', '', '')]: 'not a public key',
      [lineOf('ecdsa-sha2-nistp256', 'nistp256', '\u0000')]: 'not a public key',
      [lineOf('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(65, 4))]: 'not a public key',
      [`ssh-ed25519 ${body}AAAA`]: 'not a public key',
      'ssh-dss AAAAB3NzaC1kc3MAAACBAP1/U4Ed': 'ssh-ed25519',
      'sk-ssh-ed25519@openssh.com AAAA': 'ssh-ed25519',
      '': 'ssh-ed25519',
      [`ssh-ed25519 ${'A'.repeat(20_000)}`]: 'too long',
    };
    for (const [text, why] of Object.entries(bad)) {
      expect(() => parsePublicKey(text)).toThrow(BadPublicKey);
      expect(() => parsePublicKey(text)).toThrow(why);
    }
  });
});
