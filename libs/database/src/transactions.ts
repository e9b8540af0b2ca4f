import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { CallContext, Idempotency } from '@atoll/contracts';
import { AppError, isAppError, stillRunning } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, type QueryRunner } from 'typeorm';
import { CallNonce } from './call-nonce.entity.js';
import { tableOf } from './data-source.js';
import { isRetryable, toAppError } from './database-errors.js';
import type { GuardedClient } from './guarded-client.js';
import { CopiedCall, outsideOfCalls, withClaim, type CallInHand, type NonceClaim } from './handle-once.js';
import { IdempotencyKey } from './idempotency-key.entity.js';

const maxAttempts = 5;
/** The wait before attempt n is drawn from 0 to this, doubled each time: 300 ms in all at most. */
const firstWaitMs = 20;

export interface OnceOptions<T> {
  /** What is kept of the reply for later calls: the place to mask secrets. */
  keep?: (reply: T) => T;
}

/** The one door to changing data. */
@Injectable()
export class Transactions {
  private readonly table: string;
  private readonly nonces: string;

  constructor(private readonly dataSource: DataSource) {
    this.table = tableOf(dataSource, IdempotencyKey);
    this.nonces = tableOf(dataSource, CallNonce);
  }

  /**
   * Runs the work in one transaction (READ COMMITTED) and commits. After a serialization failure or a deadlock all of it runs again,
   * five times at most, so the work must do nothing outside the transaction. Throws what the work throws, and AppError `unavailable`
   * where the database fails; then nothing of the work was kept, unless the connection broke during the commit itself.
   *
   * In a call that came over the network the nonce of the call commits too, see `handleOnce`. The work then begins after a first
   * statement, so it cannot change the isolation level.
   */
  async run<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withClaim((claim) => this.attempt(work, claim));
      } catch (error) {
        if (!isRetryable(error) || attempt === maxAttempts) throw toAppError(error);
        await delay(Math.random() * firstWaitMs * 2 ** (attempt - 1));
      }
    }
  }

  /**
   * As `run`, for the effects of several calls (`callInHand`), each with the claim of its own call. `work` is told which of them are copies of a call that has
   * had its effect: they get none, and are to be answered by `CopiedCall`.
   */
  async runShared<T>(
    calls: readonly (CallInHand | undefined)[],
    work: (manager: EntityManager, isCopy: readonly boolean[]) => Promise<T>,
  ): Promise<T> {
    let isCopy: boolean[] = [];
    const result = await outsideOfCalls(() =>
      this.run(async (manager) => {
        isCopy = await this.claimAll(manager, calls);
        return work(manager, isCopy);
      }),
    );
    calls.forEach((call, at) => call?.settle(isCopy[at] ?? false));
    return result;
  }

  /** Of each call, whether it is a copy. */
  private async claimAll(manager: EntityManager, calls: readonly (CallInHand | undefined)[]): Promise<boolean[]> {
    const claims = calls.map((call) => call?.claim);
    const wanted = claims.flatMap((claim) => claim ?? []).toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1));
    if (wanted.length === 0) return calls.map(() => false);
    const rows = await manager.query<{ nonce: string }[]>(
      `INSERT INTO ${this.nonces} (nonce, expires_at)
       SELECT decode(nonce, 'hex'), to_timestamp(at_s) FROM unnest($1::text[], $2::float8[]) wanted (nonce, at_s)
       ON CONFLICT (nonce) DO NOTHING RETURNING encode(nonce, 'hex') AS nonce`,
      [wanted.map(({ nonce }) => nonce), wanted.map(({ expiresAtS }) => expiresAtS)],
    );
    const ours = new Set(rows.map(({ nonce }) => nonce));
    return claims.map((claim) => claim !== undefined && !ours.delete(claim.nonce));
  }

  /**
   * As `run`, and where the caller sent an `Idempotency-Key` the work is done once: its reply commits with its effect and answers the same
   * call for 24 h. Throws `conflict` while a call with this key is running, `idempotency_mismatch` when the body is another. What fails is not kept.
   */
  async once<T extends object>(
    context: CallContext,
    work: (manager: EntityManager) => Promise<T>,
    options: OnceOptions<T> = {},
  ): Promise<T> {
    const { idempotency } = context;
    if (!idempotency) return this.run(work);
    const { keep = (reply: T) => reply } = options;
    const id = idOf(this.table, idempotency);
    return this.run(async (manager) => {
      const claimed = await this.claim(manager, id);
      const kept = await this.find(manager, id);
      if (kept) return replyOf<T>(kept, idempotency);
      if (!claimed) throw stillRunning();
      const reply = await work(manager);
      await manager.query(
        `INSERT INTO ${this.table} (id, fingerprint, reply, expires_at) VALUES ($1, $2, $3, now() + interval '24 hours')
         ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, reply = excluded.reply, expires_at = excluded.expires_at`,
        [id, idempotency.fingerprint, JSON.stringify(keep(reply))],
      );
      return reply;
    });
  }

  /**
   * The reply that `once` has kept for this call, if any: for what has to be found out from others before the transaction, and would come out otherwise
   * after the effect. Throws as `once` does.
   */
  async kept<T extends object>({ idempotency }: CallContext): Promise<T | undefined> {
    if (!idempotency) return undefined;
    const kept = await this.run((manager) => this.find(manager, idOf(this.table, idempotency)));
    return kept && replyOf<T>(kept, idempotency);
  }

  /** Makes the `Idempotency-Key` of a call free again, where the reply that `once` has kept for it has this value in this field: its effect was undone. */
  async forget({ idempotency }: CallContext, field: string, value: string): Promise<void> {
    if (!idempotency) return;
    const id = idOf(this.table, idempotency);
    await this.run((manager) => manager.query(`DELETE FROM ${this.table} WHERE id = $1 AND reply ->> $2 = $3`, [id, field, value]));
  }

  /**
   * The lock is the database's, for the transaction: it ends with the process that held it, whatever became of that. Not had, it may be of a call that runs, or of one
   * that only reads the reply that is kept.
   */
  private async claim(manager: EntityManager, id: Buffer): Promise<boolean> {
    const [row] = await manager.query<{ claimed: boolean }[]>('SELECT pg_try_advisory_xact_lock($1) AS claimed', [id.readBigInt64BE()]);
    return row?.claimed === true;
  }

  /** A statement of its own, so that it sees what was committed before the lock was had or refused. */
  private async find(manager: EntityManager, id: Buffer): Promise<{ fingerprint: string; reply: object } | undefined> {
    const rows = await manager.query<{ fingerprint: string; reply: object }[]>(
      `SELECT fingerprint, reply FROM ${this.table} WHERE id = $1 AND expires_at > now()`,
      [id],
    );
    return rows[0];
  }

  private async attempt<T>(work: (manager: EntityManager) => Promise<T>, claim?: NonceClaim): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    let client: GuardedClient | undefined;
    try {
      client = (await runner.connect()) as GuardedClient;
      if (claim) await this.startWithClaim(runner, client, claim);
      else await runner.startTransaction();
      const result = await work(runner.manager);
      await runner.commitTransaction();
      if (claim) claim.hasCommitted = true;
      for (const hook of hooksOf(runner)) hook();
      return result;
    } catch (error) {
      // A connection that is gone has rolled back by itself.
      if (runner.isTransactionActive) await runner.rollbackTransaction().catch(() => undefined);
      throw isAppError(error) ? error : (client?.lost ?? error);
    } finally {
      await runner.release();
    }
  }

  private async startWithClaim(runner: QueryRunner, client: GuardedClient, claim: NonceClaim): Promise<void> {
    const claimed = await client.startTogetherWith(claim.statement(this.nonces), () => runner.startTransaction());
    if (claimed === 0) throw new CopiedCall();
  }
}

function replyOf<T extends object>(kept: { fingerprint: string; reply: object }, { fingerprint }: Idempotency): T {
  if (kept.fingerprint !== fingerprint) {
    throw new AppError('idempotency_mismatch', 'This Idempotency-Key was used before, with another body.');
  }
  return kept.reply as T;
}

/**
 * Calls the hook after the transaction of `manager` has committed, and never if it does not: for hints to this process,
 * which may be lost. A hook that is registered several times in one transaction is called once. It must not throw.
 */
export function afterCommit(manager: EntityManager, hook: () => void): void {
  const { queryRunner } = manager;
  if (!queryRunner?.isTransactionActive) throw new Error('afterCommit must be called inside a transaction.');
  queryRunner.data.afterCommit = hooksOf(queryRunner).add(hook);
}

function hooksOf({ data }: QueryRunner): Set<() => void> {
  return (data as { afterCommit?: Set<() => void> }).afterCommit ?? new Set();
}

/** The table is part of it: its lock must not be that of another service in the same database, to which the call goes on. */
function idOf(table: string, { scope, key }: Idempotency): Buffer {
  return createHash('sha256').update(`${table}\0${scope}\0${key}`).digest();
}
