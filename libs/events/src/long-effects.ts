import type { EntityManager } from 'typeorm';

/** The reason of a try that the database gave up, as operators read it. */
export const tookTooLong = 'A statement of the effect took longer than the database allows (57014).';

/**
 * Within the transaction of an effect that was tried before: to wait for locks of others is no fault of the event, and
 * ends as an outage (55P03) before the statement takes too long (57014).
 */
export async function limitLockWaits(manager: EntityManager): Promise<void> {
  await manager.query(
    `SELECT set_config('lock_timeout', (setting::integer / 2)::text, true) FROM pg_settings WHERE name = 'statement_timeout'`,
  );
}
