import type { Certificate } from '@atoll/cluster';
import { messageOf } from '@atoll/errors';
import { Transactions } from '@atoll/database';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { PodsSettings } from '../pods-settings.js';
import { Certificates } from '../certificates/certificates.js';

const everyMs = 5_000;

/** Gives exposed services the operator's certificate anew when its files have changed. */
@Injectable()
export class CertificateRenewal implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(CertificateRenewal.name);
  /** What exposed services have, or were told to take. */
  private given: Certificate | undefined;
  private readonly rounds = new Rounds(() => this.look().then(() => everyMs));

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly certificates: Certificates,
    private readonly exposures: ExposureSteps,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.rounds.start(everyMs);
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.rounds.stop();
  }

  async look(): Promise<void> {
    try {
      const current = await this.certificates.current();
      const before = this.given;
      // The first was there before this process began. Services that were opened before get it with their next review.
      this.given ??= current;
      if (!current || !before || current === before) return;
      const rows = await this.dataSource.query<{ service_id: string }[]>(
        `SELECT service_id FROM exposure WHERE is_ssl AND state IN ('active', 'provisioning', 'updating', 'reverting')`,
      );
      await this.transactions.run((manager) =>
        this.exposures.touch(
          manager,
          rows.map(({ service_id }) => service_id),
        ),
      );
      this.given = current;
      this.logger.log(`The certificate has changed; ${rows.length} exposed services get it.`);
    } catch (error) {
      this.logger.warn(`Cannot look for a new certificate; retrying: ${messageOf(error)}`);
    }
  }
}
