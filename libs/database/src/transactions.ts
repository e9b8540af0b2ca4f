import { setTimeout as delay } from 'node:timers/promises';
import type { CallContext, Idempotency } from '@atoll/contracts';
import { isAppError } from '@atoll/errors';
import { backOffMs, type BackOff } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, type QueryRunner } from 'typeorm';
import { CallNonce } from './call-nonce.entity.js';
import { tableOf } from './data-source.js';
import { isRetryable, toAppError } from './database-errors.js';
import type { GuardedClient } from './guarded-client.js';
import { CopiedCall, lateness, outsideOfCalls, withClaim, type CallInHand, type NonceClaim } from './handle-once.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { KeptReplies, orThrow } from './kept-replies.js';

const maxAttempts = 5;
/** The wait before attempt n is drawn from 0 to 20 ms, doubled each time: 300 ms in all at most. */
const afterConflict: BackOff = { firstMs: 20, maxMs: 160, jitter: 1 };

export interface OnceOptions<T> {
  /** What is kept of the reply for later calls: the place to mask secrets. */
  keep?: (reply: T) => T;
}

/** One of several calls that share a transaction. */
export interface SharedCall {
  /** As `callInHand` gave it. */
  readonly call: CallInHand | undefined;
  /** Epoch milliseconds: afterwards nothing is begun for it. */
  readonly deadlineAtMs?: number;
  readonly idempotency?: Idempotency | undefined;
}

/** By place; undefined: it is to be done. */
type Refusals = readonly (Error | undefined)[];
type SharedWork<T> = (manager: EntityManager, places: readonly number[]) => Promise<readonly (T | Error)[]>;

/** The one door to changing data. */
@Injectable()
export class Transactions {
  private readonly replies: KeptReplies;
  private readonly nonces: string;

  constructor(private readonly dataSource: DataSource) {
    this.replies = new KeptReplies(tableOf(dataSource, IdempotencyKey));
    this.nonces = tableOf(dataSource, CallNonce);
  }

  /**
   * Runs the work in one transaction (READ COMMITTED) and commits. After a serialization failure or a deadlock all of
   * it runs again, five times at most, so the work must do nothing outside the transaction. Throws what the work
   * throws, and AppError `unavailable` where the database fails; then nothing of the work was kept, unless the
   * connection broke during the commit itself.
   *
   * In a call that came over the network the nonce of the call commits too, see `handleOnce`. The work then begins
   * after a first statement, so it cannot change the isolation level. Throws `deadline_exceeded` for such a call that
   * has committed nothing by its deadline, before the work begins.
   */
  async run<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withClaim((claim) => this.attempt(work, claim));
      } catch (error) {
        if (!isRetryable(error) || attempt === maxAttempts) throw toAppError(error);
        await delay(backOffMs(afterConflict, attempt));
      }
    }
  }

  /**
   * As `once`, for the effects of several calls in one transaction, each with the claim of its own call. `work` is
   * given the places of those that are to be done, and answers them in this order. The others are answered by what was
   * kept of them, by the error that `once` would throw, by `deadline_exceeded` where their deadline has passed, and a
   * copy of a call that has had its effect by `CopiedCall`.
   */
  async onceShared<T extends object>(calls: readonly SharedCall[], work: SharedWork<T>): Promise<(T | Error)[]> {
    let refusals: Refusals = [];
    const answers = await outsideOfCalls(() =>
      this.run(async (manager) => {
        refusals = await this.claimAll(manager, calls);
        return this.answerAll(manager, calls, refusals, work);
      }),
    );
    calls.forEach(({ call }, at) => {
      const refusal = refusals[at];
      // The claim of a call that came too late was not made.
      if (!refusal || refusal instanceof CopiedCall) call?.settle(refusal !== undefined);
    });
    return answers;
  }

  private async answerAll<T extends object>(
    manager: EntityManager,
    calls: readonly SharedCall[],
    refusals: Refusals,
    work: SharedWork<T>,
  ): Promise<(T | Error)[]> {
    const known = await this.replies.answersTo<T>(
      manager,
      calls.map(({ idempotency }, at) => (refusals[at] ? undefined : idempotency)),
    );
    const answers = known.map((answer, at): T | Error | undefined => refusals[at] ?? answer);
    const places = answers.flatMap((answer, at) => (answer ? [] : [at]));
    const done = places.length > 0 ? await work(manager, places) : [];
    const kept = places.flatMap((at, place) => {
      const [reply, idempotency] = [done[place], calls[at]?.idempotency];
      answers[at] = reply;
      return idempotency && reply && !(reply instanceof Error) ? [{ idempotency, reply }] : [];
    });
    await this.replies.keep(manager, kept);
    return answers.map((answer) => {
      if (!answer) throw new Error('A call was not answered.');
      return answer;
    });
  }

  /** Why nothing is done for a call: it came too late, also by the wait for a connection, or it is a copy. */
  private async claimAll(manager: EntityManager, calls: readonly SharedCall[]): Promise<Refusals> {
    const claims = calls.map(({ call }) => call?.claim);
    const late = calls.map(({ deadlineAtMs = Infinity }) => lateness(deadlineAtMs));
    const wanted = claims
      .flatMap((claim, at) => (claim && !late[at] ? [claim] : []))
      .toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1));
    if (wanted.length === 0) return late;
    const rows = await manager.query<{ nonce: string }[]>(
      `INSERT INTO ${this.nonces} (nonce, expires_at)
       SELECT decode(nonce, 'hex'), to_timestamp(at_s) FROM unnest($1::text[], $2::float8[]) wanted (nonce, at_s)
       ON CONFLICT (nonce) DO NOTHING RETURNING encode(nonce, 'hex') AS nonce`,
      [wanted.map(({ nonce }) => nonce), wanted.map(({ expiresAtS }) => expiresAtS)],
    );
    const ours = new Set(rows.map(({ nonce }) => nonce));
    return claims.map(
      (claim, at) => late[at] ?? (claim === undefined || ours.delete(claim.nonce) ? undefined : new CopiedCall()),
    );
  }

  /**
   * As `run`, and where the caller sent an `Idempotency-Key` the work is done once: its reply commits with its effect
   * and answers the same call for 24 h. Throws `conflict` while a call with this key is running, `idempotency_mismatch`
   * when the body is another. What fails is not kept.
   */
  async once<T extends object>(
    context: CallContext,
    work: (manager: EntityManager) => Promise<T>,
    options: OnceOptions<T> = {},
  ): Promise<T> {
    const { idempotency } = context;
    if (!idempotency) return this.run(work);
    const { keep = (reply: T) => reply } = options;
    return this.run(async (manager) => {
      const [known] = await this.replies.answersTo<T>(manager, [idempotency]);
      if (known) return orThrow(known);
      const reply = await work(manager);
      await this.replies.keep(manager, [{ idempotency, reply: keep(reply) }]);
      return reply;
    });
  }

  /**
   * The reply that `once` has kept for this call, if any: for what has to be found out from others before the
   * transaction, and would come out otherwise after the effect. Throws as `once` does.
   */
  async kept<T extends object>({ idempotency }: CallContext): Promise<T | undefined> {
    if (!idempotency) return undefined;
    return this.run((manager) => this.replies.find<T>(manager, idempotency));
  }

  /**
   * Makes an `Idempotency-Key` free again, where the reply that `once` has kept for it has this value in this field:
   * its effect was undone.
   */
  async forget(idempotency: Idempotency, field: string, value: string): Promise<void> {
    await this.run((manager) => this.replies.forget(manager, idempotency, field, value));
  }

  private async attempt<T>(work: (manager: EntityManager) => Promise<T>, claim?: NonceClaim): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    let client: GuardedClient | undefined;
    try {
      client = (await runner.connect()) as GuardedClient;
      // After the wait for a connection, in which a process may have been frozen.
      claim?.requireInTime();
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
