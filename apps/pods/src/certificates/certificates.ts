import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Certificate } from '@atoll/cluster';
import { Statements } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { Injectable, Logger } from '@nestjs/common';
import { certificatePurpose } from '../model/certificate.entity.js';
import { PodsSettings } from '../pods-settings.js';
import { selfSigned } from './self-signed.js';

const selfSignedDays = 365;

/** The certificates with which TLS ends in front of pods: the operator's, read again when its files change, or a self-signed one for each public host. */
@Injectable()
export class Certificates {
  private readonly logger = new Logger(Certificates.name);
  private read: { readonly version: string; readonly certificate: Certificate } | undefined;
  /** The files that could not be read last: said once, though each service asks for them. */
  private warnedOf: string | undefined;

  constructor(
    private readonly statements: Statements,
    private readonly sealer: Sealer,
    private readonly settings: PodsSettings,
  ) {}

  /** For connections to this host. Throws where the operator's files have never been readable. */
  async of(publicHost: string): Promise<Certificate> {
    const { tlsCert, tlsKey } = this.settings;
    if (tlsCert === undefined || tlsKey === undefined) return this.selfSignedOf(publicHost);
    return this.operators(tlsCert, tlsKey);
  }

  /** The operator's, from now on; undefined where services have self-signed ones, or none could be read yet. */
  async current(): Promise<Certificate | undefined> {
    const { tlsCert, tlsKey } = this.settings;
    if (tlsCert === undefined || tlsKey === undefined) return undefined;
    // What cannot be read was logged, and is read by the next look.
    return this.operators(tlsCert, tlsKey).catch(() => undefined);
  }

  private async operators(certFile: string, keyFile: string): Promise<Certificate> {
    let version = 'none';
    try {
      version = await versionOf(certFile, keyFile);
      if (this.read?.version === version) return this.read.certificate;
      const [certificate, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
      // Throws where the two do not belong together: half of a renewal may be written.
      createSecureContext({ cert: certificate, key });
      this.read = { version, certificate: { certificate, key } };
      return this.read.certificate;
    } catch (error) {
      if (this.warnedOf !== version) {
        this.logger.warn('Cannot read the certificate of ATOLL_TLS_CERT and ATOLL_TLS_KEY; exposed services keep the last one.');
      }
      this.warnedOf = version;
      if (this.read) return this.read.certificate;
      throw error;
    }
  }

  private async selfSignedOf(publicHost: string): Promise<Certificate> {
    const purpose = certificatePurpose(publicHost);
    const find = `SELECT certificate, sealed_key FROM certificate WHERE public_host = $1 AND expires_at > clock_timestamp() + interval '30 days'`;
    const known = await this.statements.query<{ certificate: string; sealed_key: string }>('certificates.find', find, [publicHost]);
    if (known.length === 0) {
      const { certificate, key, expiresAt } = selfSigned(publicHost, selfSignedDays);
      await this.statements.query(
        'certificates.keep',
        `INSERT INTO certificate (public_host, certificate, sealed_key, expires_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (public_host) DO UPDATE SET certificate = excluded.certificate, sealed_key = excluded.sealed_key, expires_at = excluded.expires_at
           WHERE certificate.expires_at <= clock_timestamp() + interval '30 days'`,
        [publicHost, certificate, this.sealer.seal(key, purpose), expiresAt],
      );
    }
    const [row] =
      known.length > 0
        ? known
        : await this.statements.query<{ certificate: string; sealed_key: string }>('certificates.find', find, [publicHost]);
    if (!row) throw new Error(`The certificate of ${publicHost} was not kept.`);
    return { certificate: row.certificate, key: this.sealer.open(row.sealed_key, purpose).toString('utf8') };
  }
}

async function versionOf(...files: string[]): Promise<string> {
  const stats = await Promise.all(files.map((file) => stat(file)));
  return stats.map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(' ');
}
