import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';

const everyMs = 10 * 60_000;
const batchSize = 1_000;
/** Of one table in one turn: far more than a flood of log-ins from a hundred addresses leaves behind between two. */
const maxBatches = 100;

/** Each removes a batch at most of what nobody asks for any more. */
const removals = [
  `DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at < now() - interval '1 day' LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM log_in_bucket WHERE id IN (SELECT id FROM log_in_bucket WHERE full_at < now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM log_in_network WHERE (user_id, network) IN (
     SELECT user_id, network FROM log_in_network WHERE last_used_at < now() - interval '180 days' LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM sso_flow WHERE id IN (SELECT id FROM sso_flow WHERE expires_at < now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM passkey_challenge WHERE id IN (
     SELECT id FROM passkey_challenge WHERE expires_at < now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM one_time_link WHERE id IN (
     SELECT id FROM one_time_link WHERE expires_at < now() - interval '7 days' LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
] as const;

/** Removes what sessions leave behind. Replicas do not wait for each other. */
@Injectable()
export class SessionUpkeep implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(SessionUpkeep.name);
  private timer?: NodeJS.Timeout;

  constructor(private readonly dataSource: DataSource) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.clean(), everyMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Throws nothing: what stays is removed the next time. */
  async clean(): Promise<void> {
    for (const removal of removals) {
      try {
        for (let batch = 0; batch < maxBatches; batch += 1) {
          const [, removed] = await this.dataSource.query<[unknown[], number]>(removal);
          if (removed < batchSize) break;
        }
      } catch (error) {
        this.logger.warn(`Old rows of sessions stay until the next try: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
}
