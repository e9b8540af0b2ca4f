import { Removals } from '@atoll/database';
import { Injectable } from '@nestjs/common';
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
export class SessionUpkeep extends Removals {
  constructor(private readonly dataSource: DataSource) {
    super('old sessions');
  }

  /** Removes a batch from each table, also where another one fails. */
  override async removeSome(): Promise<boolean> {
    let mayHaveMore = false;
    for (const statement of statements) {
      try {
        const [, removed] = await this.dataSource.query<[unknown[], number]>(statement);
        mayHaveMore ||= removed === batchSize;
      } catch (error) {
        this.warn(error);
      }
    }
    return mayHaveMore;
  }
}
