import { messageOf } from '@atoll/errors';
import { Removals } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';

const batchSize = 1_000;

/** Each removes at most one batch of rows that are no longer needed. */
const statements = [
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
export class SessionUpkeep implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(SessionUpkeep.name);
  private readonly failed = (error: unknown): void =>
    this.logger.warn(`Cannot remove old sessions; retrying: ${messageOf(error)}`);
  private readonly removals = new Removals(() => this.removeSome(), this.failed);

  constructor(private readonly dataSource: DataSource) {}

  onApplicationBootstrap(): void {
    this.removals.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.removals.stop();
  }

  /** Removes a batch from each table, also where another one fails. Resolves with whether there may be more. */
  async removeSome(): Promise<boolean> {
    let mayHaveMore = false;
    for (const statement of statements) {
      try {
        const [, removed] = await this.dataSource.query<[unknown[], number]>(statement);
        mayHaveMore ||= removed === batchSize;
      } catch (error) {
        this.failed(error);
      }
    }
    return mayHaveMore;
  }
}
