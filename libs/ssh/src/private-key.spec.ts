import { expect, it } from '@jest/globals';
import { checkPrivateKey, generateKeyPair } from './private-key.js';
import { parsePublicKey } from './public-key.js';

it('each key pair that is made can be read again, also where a half begins with a zero byte', () => {
  for (let made = 0; made < 1_500; made += 1) {
    const { publicKey, privateKey } = generateKeyPair();
    expect(parsePublicKey(publicKey).line).toBe(publicKey);
    checkPrivateKey(privateKey);
  }
});
