import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Certificate } from '../objects.js';

const run = promisify(execFile);
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/**
 * A certificate for a name, for the address 127.0.0.1 and for a day, signed by `issuer` or by itself. Needs the program
 * openssl.
 */
export async function createCertificate(name: string, issuer?: Certificate): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-certificate-'));
  const file = (base: string) => join(folder, base);
  try {
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`, '-days', '1'];
    const output = ['-keyout', file('key'), '-out', file('certificate')];
    if (issuer) await Promise.all([writeFile(file('ca'), issuer.certificate), writeFile(file('ca-key'), issuer.key)]);
    const signedBy = issuer
      ? ['-CA', file('ca'), '-CAkey', file('ca-key'), '-addext', 'basicConstraints=critical,CA:FALSE']
      : [];
    await run('openssl', ['req', '-x509', ...newKey, ...subject, ...output, ...signedBy]);
    return { certificate: await readFile(file('certificate'), 'utf8'), key: await readFile(file('key'), 'utf8') };
  } finally {
    await rm(folder, { recursive: true });
  }
}
