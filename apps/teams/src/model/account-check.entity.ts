import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn, type EntityManager } from 'typeorm';

/** A user who has lost a membership: upkeep looks whether the account has anything left. No foreign key. */
@Entity('account_check')
export class AccountCheckEntity {
  @PrimaryColumn('uuid')
  userId!: string;

  @Index()
  @Column(instant)
  dueAt!: Date;
}

/** In SQL: how an `INSERT` of `user_id` and `due_at` ends. */
export const orCheckAgain = 'ON CONFLICT (user_id) DO UPDATE SET due_at = excluded.due_at';

/**
 * Within the transaction that removes a membership: its account is checked an hour later. Never at once, or the time
 * that it takes would tell the caller whether there is anything on the account.
 */
export async function checkLater(manager: EntityManager, userId: string): Promise<void> {
  await manager.query(
    `INSERT INTO account_check (user_id, due_at) VALUES ($1, now() + interval '1 hour') ${orCheckAgain}`,
    [userId],
  );
}
