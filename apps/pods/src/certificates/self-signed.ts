import { KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * A certificate (RFC 5280) for a name or an address, signed by its own key (ECDSA, P-256), good for `days`: for clients
 * that are told to trust it.
 */
export async function selfSigned(
  host: string,
  days: number,
): Promise<{ certificate: string; key: string; expiresAt: Date }> {
  // Loaded with the first certificate that is made: most replicas find theirs in the database.
  const { BasicConstraintsExtension, SubjectAlternativeNameExtension, X509CertificateGenerator } =
    await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const expiresAt = new Date(Date.now() + days * 86_400_000);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    name: [{ CN: [host.slice(0, 64)] }],
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: expiresAt,
    extensions: [
      new SubjectAlternativeNameExtension([{ type: isIP(host) ? 'ip' : 'dns', value: host }]),
      new BasicConstraintsExtension(true),
    ],
  });
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
    expiresAt,
  };
}
