import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { getSystemErrorMessage } from 'node:util';
import type { Certificate } from '@atoll/cluster';
import { messageOf } from '@atoll/errors';
import type { PodsSettings } from '../pods-settings.js';

/**
 * The files of `ATOLL_TLS_CERT` and `ATOLL_TLS_KEY`. What is thrown of them is a sentence that names the variable, the
 * file and the cause.
 */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * Undefined where services have certificates that sign themselves. Throws where one of the two is set without the
 * other.
 */
export function certificateFiles({
  tlsCert: cert,
  tlsKey: key,
}: Pick<PodsSettings, 'tlsCert' | 'tlsKey'>): CertificateFiles | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key };
  if (cert === undefined && key === undefined) return undefined;
  const [given, missing] =
    cert === undefined ? ['ATOLL_TLS_KEY', 'ATOLL_TLS_CERT'] : ['ATOLL_TLS_CERT', 'ATOLL_TLS_KEY'];
  throw new Error(`${given} needs ${missing}: set both, or neither.`);
}

/** Another text when the files have changed. */
export async function versionOf(files: CertificateFiles): Promise<string> {
  return (await bothOf(files, stampOf)).join(' ');
}

/** Throws where the files hold no certificate and the key of it: half of a renewal may be written. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const { cert, key } = files;
  const [chain, secret] = await bothOf(files, contentOf);
  const leaf = attempt(() => new X509Certificate(chain), `ATOLL_TLS_CERT: ${cert} contains no PEM certificate.`);
  const privateKey = attempt(
    () => createPrivateKey(secret),
    `ATOLL_TLS_KEY: ${key} holds no private key in PEM without a passphrase.`,
  );
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error(`ATOLL_TLS_KEY: ${key} is not the private key of the certificate of ATOLL_TLS_CERT, ${cert}.`);
  }
  const unusable = `ATOLL_TLS_CERT and ATOLL_TLS_KEY: the certificate chain in ${cert} or the key in ${key} cannot be used for TLS.`;
  attempt(() => createSecureContext({ cert: chain, key: secret }), unusable);
  return { certificate: chain, key: secret };
}

async function stampOf(file: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(file);
  return `${mtimeMs} ${size} ${ino}`;
}

/** What waits for ever, such as a pipe, is not read. */
async function contentOf(file: string): Promise<string> {
  if (!(await stat(file)).isFile()) throw new Error('it is not a file');
  return readFile(file, 'utf8');
}

/** Throws the faults of both, in this order: the same text each time, as what logs it once needs. */
async function bothOf<T>({ cert, key }: CertificateFiles, read: (file: string) => Promise<T>): Promise<[T, T]> {
  const [ofCert, ofKey] = await Promise.allSettled([
    reading('ATOLL_TLS_CERT', cert, read),
    reading('ATOLL_TLS_KEY', key, read),
  ]);
  if (ofCert.status === 'fulfilled' && ofKey.status === 'fulfilled') return [ofCert.value, ofKey.value];
  throw new Error([ofCert, ofKey].flatMap((of) => (of.status === 'rejected' ? messageOf(of.reason) : [])).join(' '));
}

async function reading<T>(variable: string, file: string, read: (file: string) => Promise<T>): Promise<T> {
  try {
    return await read(file);
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    throw new Error(
      `${variable}: ${file} cannot be read: ${errno === undefined ? message : getSystemErrorMessage(errno)}.`,
    );
  }
}

/** What a library says of a key may quote it. */
function attempt<T>(act: () => T, sentence: string): T {
  try {
    return act();
  } catch {
    throw new Error(sentence);
  }
}
