import { describe, expect, it } from '@jest/globals';
import ssh2 from 'ssh2';
import { BadPublicKey, parsePublicKey } from './public-key.js';

const { generateKeyPairSync } = ssh2.utils;
const ed25519 = generateKeyPairSync('ed25519', { comment: 'ada@laptop' });

describe('a public key', () => {
  it('of each strong type is taken, with its fingerprint and comment', () => {
    const keys = [
      ed25519,
      generateKeyPairSync('ecdsa', { bits: 256 }),
      generateKeyPairSync('ecdsa', { bits: 521 }),
      generateKeyPairSync('rsa', { bits: 3072 }),
    ];
    for (const { public: line } of keys) {
      const parsed = parsePublicKey(`  ${line}\n`);
      expect(line).toContain(parsed.line);
      expect(parsed.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    }
    expect(parsePublicKey(ed25519.public).comment).toBe('ada@laptop');
  });

  it('has the fingerprint that ssh-keygen shows', () => {
    const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github.com';
    expect(parsePublicKey(line).fingerprint).toBe('SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU');
  });

  it('that is weak, malformed or not a public key is refused, with what is taken', () => {
    const weak = generateKeyPairSync('rsa', { bits: 2048 }).public;
    const [type, body = ''] = ed25519.public.split(' ');
    const bad = {
      [weak]: 'at least 3072 bits',
      [ed25519.private]: 'one line',
      [ed25519.private.replaceAll('\n', ' ')]: 'private key',
      [`command="rm" ${ed25519.public}`]: 'without options',
      [`${ed25519.public}\n${ed25519.public}`]: 'one line',
      [`${type} ${body.slice(0, -8)}`]: 'not a public key',
      [`ssh-rsa ${body}`]: 'not a public key',
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
