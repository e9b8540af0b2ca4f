import { createPrivateKey, X509Certificate } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { selfSigned } from './self-signed.js';

it.each([
  ['pods.example.com', 'DNS:pods.example.com'],
  ['192.0.2.7', 'IP Address:192.0.2.7'],
  ['2001:db8::7', 'IP Address:2001:DB8:0:0:0:0:0:7'],
])('a self-signed certificate is for %s alone, and signed by its own key', async (host, subjectAltName) => {
  const { certificate, key, expiresAt } = await selfSigned(host, 30);
  const read = new X509Certificate(certificate);
  expect(read).toMatchObject({ subject: `CN=${host}`, issuer: `CN=${host}`, subjectAltName, ca: true });
  expect(read.verify(read.publicKey)).toBe(true);
  expect(read.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(read.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
  expect(read.validFromDate.getTime()).toBeLessThan(Date.now());
  expect(read.validToDate.getTime()).toBe(expiresAt.getTime() - expiresAt.getMilliseconds());
});
