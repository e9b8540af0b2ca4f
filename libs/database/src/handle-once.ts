import { AsyncLocalStorage } from 'node:async_hooks';
import { AppError } from '@atoll/errors';

/** A call that came over the network, where it may have been copied. */
export interface SignedCall {
  /** What no other call has, and every copy of this one: the signature of the request, base64url. */
  nonce: string;
  /** Epoch milliseconds from which every replica refuses the call. */
  deadlineAtMs: number;
}

/** Clocks of replicas may differ by as much before a copy could outlive the nonce. */
const clockSkewMs = 60_000;
/** The latest instant that a Date can hold. */
const latestMs = 8.64e15;

const runningCalls = new AsyncLocalStorage<RunningCall>();

/**
 * Handles a call so that its effects commit once, however many replicas its copies reach: the first transaction of
 * `handle` that commits through `Transactions` remembers the nonce with its effect, for as long as a copy could still
 * be taken. Resolves with undefined where another replica did so first: then nothing was committed here, and nobody is
 * to be answered. Throws what `handle` throws.
 *
 * A call that has changed nothing by its deadline changes nothing any more: a process that was frozen would make the
 * change when it resumes, over newer ones, for a caller who was told of a failure long ago and may have lost the right
 * to it.
 *
 * A call that changes nothing is not remembered, and costs no statement. What `handle` leaves running in the background
 * when it has ended belongs to no call any more.
 */
export async function handleOnce<T>(call: SignedCall, handle: () => Promise<T>): Promise<T | undefined> {
  const running = new RunningCall(call);
  try {
    const result = await runningCalls.run(running, handle);
    return running.isCopy ? undefined : result;
  } catch (error) {
    if (running.isCopy) return undefined;
    throw error;
  } finally {
    running.isOver = true;
  }
}

/**
 * Runs one attempt of a transaction, with the claim that it must make for the call that runs here: none outside of a
 * call, and none when the call has committed its claim before. Transactions of one call that begin side by side wait
 * for the first to end, until one has committed. One that begins within another stands under that one's claim: should
 * the outer one fail after it, it stays, as it would before any call that is tried again after an error.
 */
export function withClaim<T>(attempt: (claim?: NonceClaim) => Promise<T>): Promise<T> {
  return runningCalls.getStore()?.withClaim(attempt) ?? attempt();
}

/**
 * The call that runs here, for a transaction that it shares with others: see `Transactions.onceShared`. Undefined
 * outside of a call from the network.
 */
export function callInHand(): CallInHand | undefined {
  return runningCalls.getStore();
}

/** Runs the work as that of no call. */
export function outsideOfCalls<T>(work: () => Promise<T>): Promise<T> {
  return runningCalls.exit(work);
}

/** A call whose claim is made with those of others. */
export interface CallInHand {
  /** What is to be remembered of it; undefined where its claim has committed before. */
  readonly claim: ClaimValues | undefined;
  /** The transaction that held the claim has committed, or has found it taken. */
  settle(isCopy: boolean): void;
}

interface ClaimValues {
  /** Hexadecimal digits. */
  readonly nonce: string;
  /** Epoch seconds. */
  readonly expiresAtS: number;
}

function claimValues({ nonce, deadlineAtMs }: SignedCall): ClaimValues {
  return {
    nonce: Buffer.from(nonce, 'base64url').toString('hex'),
    expiresAtS: Math.min(deadlineAtMs + clockSkewMs, latestMs) / 1000,
  };
}

/** `deadline_exceeded` if a deadline (epoch milliseconds) has passed: nothing is begun for its call any more. */
export function lateness(deadlineAtMs: number): AppError | undefined {
  if (Date.now() < deadlineAtMs) return undefined;
  return new AppError('deadline_exceeded', 'The request was not begun before its deadline.');
}

class RunningCall implements CallInHand {
  isCopy = false;
  isOver = false;
  #hasCommitted = false;
  /** Resolves when the transaction that claims now has ended. */
  #claiming: Promise<void> | undefined;

  constructor(private readonly call: SignedCall) {}

  get claim(): ClaimValues | undefined {
    return this.isOver || this.#hasCommitted ? undefined : claimValues(this.call);
  }

  settle(isCopy: boolean): void {
    this.isCopy ||= isCopy;
    this.#hasCommitted = true;
  }

  async withClaim<T>(attempt: (claim?: NonceClaim) => Promise<T>): Promise<T> {
    while (this.#claiming) await this.#claiming;
    if (this.isCopy) throw new CopiedCall();
    if (this.isOver || this.#hasCommitted) return attempt();
    let end: () => void = () => undefined;
    this.#claiming = new Promise((resolve) => (end = resolve));
    const claim = new NonceClaim(this.call);
    try {
      // What begins within is covered by this claim, and must not wait for it.
      return await runningCalls.exit(() => attempt(claim));
    } catch (error) {
      if (error instanceof CopiedCall) this.isCopy = true;
      throw error;
    } finally {
      this.#hasCommitted = claim.hasCommitted;
      this.#claiming = undefined;
      end();
    }
  }
}

/** What a transaction does for its call: it remembers the nonce, or finds that another has. */
export class NonceClaim {
  /** Set by the transaction as soon as its commit was confirmed. */
  hasCommitted = false;

  constructor(private readonly call: SignedCall) {}

  requireInTime(): void {
    const late = lateness(this.call.deadlineAtMs);
    if (late) throw late;
  }

  /**
   * The statement that affects no row where the call is a copy. It waits while the outcome of another replica's
   * transaction is open. Its values are hexadecimal digits and a number, so that it can be sent together with the start
   * of the transaction.
   */
  statement(table: string): string {
    const { nonce, expiresAtS } = claimValues(this.call);
    return `INSERT INTO ${table} (nonce, expires_at) VALUES (decode('${nonce}', 'hex'), to_timestamp(${expiresAtS})) ON CONFLICT (nonce) DO NOTHING`;
  }
}

/** Ends the transaction of a copy. It never reaches a caller. */
export class CopiedCall extends Error {
  override readonly name = 'CopiedCall';

  constructor() {
    super('Another replica has committed an effect of this very call.');
  }
}
