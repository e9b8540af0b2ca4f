import { Removals, Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { isEmptyAccount } from '../model/empty-account.js';
import { UserRegistry } from './user-registry.js';

const batchSize = 1_000;

const dueQuery = `SELECT user_id FROM account_check WHERE due_at <= now() ORDER BY due_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED`;

/** Of the users `$1`, those without anything and without a membership, of whatever status and team. */
const emptyQuery = `SELECT u.id, u.email FROM "user" u WHERE u.id = ANY ($1::uuid[]) AND ${isEmptyAccount}
  AND NOT EXISTS (SELECT FROM membership o WHERE o.user_id = u.id)`;

/**
 * Of these, those without a good link for a password and without what is left of log-ins, which expires: until then the
 * account is looked at again. The link of an invitation ends with its membership.
 */
const unusedQuery = `${emptyQuery}
  AND NOT EXISTS (SELECT FROM one_time_link l
    WHERE l.user_id = u.id AND l.team_id IS NULL AND l.used_at IS NULL AND l.expires_at > now())
  ${['log_in_network', 'passkey_challenge', 'recovery_code', 'second_factor', 'session']
    .map((table) => `AND NOT EXISTS (SELECT FROM ${table} s WHERE s.user_id = u.id)`)
    .join('\n  ')}`;

/**
 * Removes accounts that an invitation has created, once they have lost their last membership and nobody has put
 * anything on them. Those whose id does not follow from their address stay: the next invitation would give them another
 * one, by which an inviter would learn that there was no account.
 */
@Injectable()
export class EmptyAccounts extends Removals {
  constructor(
    private readonly transactions: Transactions,
    private readonly registry: UserRegistry,
  ) {
    super('empty accounts');
  }

  override removeSome(): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const due = idsOf(await manager.query<{ user_id: string }[]>(dueQuery));
      const empty = await manager.query<{ id: string; email: string }[]>(emptyQuery, [due]);
      const candidates = empty.filter(({ id, email }) => id === this.registry.idOf(email)).map(({ id }) => id);
      const removed = await this.remove(manager, candidates);
      const kept = candidates.filter((id) => !removed.has(id));
      await manager.query('DELETE FROM account_check WHERE user_id = ANY ($1::uuid[])', [
        due.filter((id) => !kept.includes(id)),
      ]);
      await manager.query(
        `UPDATE account_check SET due_at = now() + interval '1 hour' WHERE user_id = ANY ($1::uuid[])`,
        [kept],
      );
      return due.length === batchSize;
    });
  }

  /**
   * Waits for nobody. Whoever invites, logs in or makes a link locks the user, as does each row that refers to it: a
   * user who is locked here, and still has nothing, gets nothing before this ends.
   */
  private async remove(manager: EntityManager, candidates: string[]): Promise<ReadonlySet<string>> {
    const locked = await manager.query<{ id: string }[]>(
      'SELECT id FROM "user" WHERE id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED',
      [candidates],
    );
    const unused = await manager.query<{ id: string }[]>(unusedQuery, [locked.map(({ id }) => id)]);
    const ids = unused.map(({ id }) => id);
    await manager.query('DELETE FROM one_time_link WHERE user_id = ANY ($1::uuid[])', [ids]);
    await manager.query('DELETE FROM "user" WHERE id = ANY ($1::uuid[])', [ids]);
    return new Set(ids);
  }
}

const idsOf = (rows: readonly { user_id: string }[]): string[] => rows.map(({ user_id }) => user_id);
