import { createHash } from 'node:crypto';
import type { Idempotency } from '@atoll/contracts';
import { AppError, stillRunning } from '@atoll/errors';
import type { EntityManager } from 'typeorm';

/** A reply, and the body that it answered. */
interface Kept {
  fingerprint: string;
  reply: object;
}

interface KeptReply {
  idempotency: Idempotency;
  reply: object;
}

/**
 * What is kept of calls under an `Idempotency-Key`: a row with the reply, and while a call runs a lock of its
 * transaction.
 */
export class KeptReplies {
  constructor(private readonly table: string) {}

  /** The reply to this call, if it was done before. Throws `idempotency_mismatch` when the body was another. */
  async find<T extends object>(manager: EntityManager, idempotency: Idempotency): Promise<T | undefined> {
    const kept = (await this.findAll(manager, [this.idOf(idempotency)])).get(this.idOf(idempotency));
    return kept && orThrow(replyOf<T>(kept, idempotency));
  }

  /**
   * Claims those of these calls that are to be done, until the transaction ends, and answers the others by their
   * places: with what was kept, `idempotency_mismatch` when the body was another, and `conflict` while one with the
   * same key is being done, by another transaction or further ahead among these.
   *
   * The lock is the database's: it ends with the process that held it, whatever became of that. Not had, it may be of a
   * call that runs, or of one that only reads the reply that is kept.
   */
  async answersTo<T extends object>(
    manager: EntityManager,
    calls: readonly (Idempotency | undefined)[],
  ): Promise<(T | AppError | undefined)[]> {
    const ids = [...new Set(calls.flatMap((call) => (call ? [this.idOf(call)] : [])))];
    if (ids.length === 0) return calls.map(() => undefined);
    const locks = await manager.query<{ id: string; claimed: boolean }[]>(
      'SELECT id, pg_try_advisory_xact_lock(lock) AS claimed FROM unnest($1::text[], $2::bigint[]) wanted (id, lock)',
      [ids, ids.map((id) => Buffer.from(id, 'hex').readBigInt64BE())],
    );
    const free = new Set(locks.flatMap(({ id, claimed }) => (claimed ? [id] : [])));
    // A statement of its own, so that it sees what was committed before the locks were had or refused.
    const kept = await this.findAll(manager, ids);
    return calls.map((call) => {
      if (!call) return undefined;
      const before = kept.get(this.idOf(call));
      if (before) return replyOf<T>(before, call);
      return free.delete(this.idOf(call)) ? undefined : stillRunning();
    });
  }

  /** For 24 hours. */
  async keep(manager: EntityManager, replies: readonly KeptReply[]): Promise<void> {
    if (replies.length === 0) return;
    await manager.query(
      `INSERT INTO ${this.table} (id, fingerprint, reply, expires_at)
       SELECT decode(id, 'hex'), fingerprint, reply::json, now() + interval '24 hours'
       FROM unnest($1::text[], $2::text[], $3::text[]) kept (id, fingerprint, reply)
       ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, reply = excluded.reply, expires_at = excluded.expires_at`,
      [
        replies.map(({ idempotency }) => this.idOf(idempotency)),
        replies.map(({ idempotency }) => idempotency.fingerprint),
        replies.map(({ reply }) => JSON.stringify(reply)),
      ],
    );
  }

  /** Forgets the reply to this call where it has this value in this field. */
  async forget(manager: EntityManager, idempotency: Idempotency, field: string, value: string): Promise<void> {
    await manager.query(`DELETE FROM ${this.table} WHERE id = decode($1, 'hex') AND reply ->> $2 = $3`, [
      this.idOf(idempotency),
      field,
      value,
    ]);
  }

  private async findAll(manager: EntityManager, ids: readonly string[]): Promise<Map<string, Kept>> {
    const rows = await manager.query<(Kept & { id: string })[]>(
      `SELECT encode(id, 'hex') AS id, fingerprint, reply FROM ${this.table}
       WHERE id = ANY (ARRAY(SELECT decode(wanted, 'hex') FROM unnest($1::text[]) wanted)) AND expires_at > now()`,
      [ids],
    );
    return new Map(rows.map((row) => [row.id, row]));
  }

  /**
   * Hexadecimal. The table is part of it: its lock must not be that of another service in the same database, to which
   * the call goes on.
   */
  private idOf({ scope, key }: Idempotency): string {
    return createHash('sha256').update(`${this.table}\0${scope}\0${key}`).digest('hex');
  }
}

/** Throws what is an error. */
export function orThrow<T extends object>(answer: T | AppError): T {
  if (answer instanceof AppError) throw answer;
  return answer;
}

function replyOf<T extends object>(kept: Kept, { fingerprint }: Idempotency): T | AppError {
  if (kept.fingerprint === fingerprint) return kept.reply as T;
  return new AppError(
    'idempotency_mismatch',
    'This Idempotency-Key was already used with a different body or query; both are compared byte by byte.',
  );
}
