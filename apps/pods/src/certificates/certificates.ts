import type { Certificate } from '@atoll/cluster';
import { Statements } from '@atoll/database';
import { messageOf } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { StepFailed } from '@atoll/state-machine';
import { ThrottledLog } from '@atoll/waiting';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { certificatePurpose } from '../model/certificate.entity.js';
import { PodsSettings } from '../pods-settings.js';
import { certificateFiles, readCertificate, versionOf, type CertificateFiles } from './operators-certificate.js';
import { selfSigned } from './self-signed.js';

const selfSignedDays = 365;

/**
 * The certificates with which TLS ends in front of pods: the operator's, read again when its files change, or a
 * self-signed one for each public host.
 */
@Injectable()
export class Certificates implements OnModuleInit {
  private readonly logger = new Logger(Certificates.name);
  private read: { readonly version: string; readonly certificate: Certificate } | undefined;
  private readonly files: CertificateFiles | undefined;
  /** Why the files cannot be read: each service asks for them. */
  private readonly faults = new ThrottledLog(({ message }) => this.logger.warn(message));

  constructor(
    private readonly statements: Statements,
    private readonly sealer: Sealer,
    settings: PodsSettings,
  ) {
    this.files = certificateFiles(settings);
  }

  /** So that there is one to keep, whatever becomes of the files. */
  async onModuleInit(): Promise<void> {
    await this.current();
  }

  /**
   * For connections to this host. Throws `StepFailed`, which another try may mend, where the operator's files have
   * never been readable.
   */
  async of(publicHost: string): Promise<Certificate> {
    return this.files ? this.operators(this.files) : this.selfSignedOf(publicHost);
  }

  /** The operator's, from now on; undefined where services have self-signed ones, or none could be read yet. */
  async current(): Promise<Certificate | undefined> {
    // What cannot be read was logged, and is read by the next look.
    return this.files && this.operators(this.files).catch(() => undefined);
  }

  private async operators(files: CertificateFiles): Promise<Certificate> {
    try {
      const version = await versionOf(files);
      if (this.read?.version !== version) this.read = { version, certificate: await readCertificate(files) };
      this.faults.forget();
      return this.read.certificate;
    } catch (error) {
      const why = messageOf(error);
      const consequence = this.read ? 'keep the last certificate' : 'with TLS wait for it';
      this.faults.log(why, { message: `${why} Exposed services ${consequence}.` });
      if (this.read) return this.read.certificate;
      throw new StepFailed('unavailable', 'The certificate of exposed services cannot be read at the moment.', false, {
        cause: error,
      });
    }
  }

  private async selfSignedOf(publicHost: string): Promise<Certificate> {
    const purpose = certificatePurpose(publicHost);
    const find = `SELECT certificate, sealed_key FROM certificate WHERE public_host = $1 AND expires_at > clock_timestamp() + interval '30 days'`;
    const known = await this.statements.query<{ certificate: string; sealed_key: string }>(find, [publicHost]);
    if (known.length === 0) {
      const { certificate, key, expiresAt } = await selfSigned(publicHost, selfSignedDays);
      await this.statements.query(
        `INSERT INTO certificate (public_host, certificate, sealed_key, expires_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (public_host) DO UPDATE SET certificate = excluded.certificate, sealed_key = excluded.sealed_key, expires_at = excluded.expires_at
           WHERE certificate.expires_at <= clock_timestamp() + interval '30 days'`,
        [publicHost, certificate, this.sealer.seal(key, purpose), expiresAt],
      );
    }
    const [row] =
      known.length > 0
        ? known
        : await this.statements.query<{ certificate: string; sealed_key: string }>(find, [publicHost]);
    if (!row) throw new Error(`The certificate of ${publicHost} was not kept.`);
    return { certificate: row.certificate, key: this.sealer.open(row.sealed_key, purpose).toString('utf8') };
  }
}
