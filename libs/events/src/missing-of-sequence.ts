import type { PublishedEvent } from '@atoll/contracts';
import { isStatementTimeout } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { backOffMs, Rounds, ThrottledLog, type BackOff, type FairSemaphore } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { DomainEvent, EventConsumer } from './courier.js';
import { describeError } from './error-description.js';
import type { EventSource } from './event-source.js';
import type { Gap, ReceivedEvents, Sequence } from './received-events.js';

export interface RecoveryRules {
  /** Between two looks for events that are missing. A fetched event that failed waits at least half of it. */
  readonly checkEveryMs: number;
  /** How long an event may be on its way before it counts as missing. */
  readonly graceMs: number;
  /**
   * How long after it came an event that has not had its effect is asked for again: longer than the broker's last try
   * of a failing event can take. A process that handles fetched events renews its claim after half of it.
   */
  readonly untakenMs: number;
}

/** Sooner at first: after a crash what was on its way is back in seconds, and not when the broker repeats it. */
export const pausesOf = ({ checkEveryMs }: RecoveryRules): BackOff => ({
  firstMs: 1_000,
  maxMs: checkEveryMs,
  jitter: 0,
});

/** A publisher that has not answered for this time is logged, since missing events stay undetected meanwhile. */
const silentMs = 60_000;

/** Gaps that are asked for in one look; where they could be filled, the next look, for others, is at once. */
const mostGaps = 20;
/** Events after which a look ends, if its time is not over before. The next one, for the rest, is at once. */
const mostFetched = 400;
/** How many events a process claims at a time, and handles before it claims others, and which try of each that is. */
const ofNew = { claim: 'claim', atATime: 20, attempt: 1 } as const;
/** Each by itself, since what ends its process must not keep others back. */
const ofDue = { claim: 'claimDue', atATime: 1, attempt: 2 } as const;
/** A look claims nothing further after this time; retries have as long again. */
const lookForMs = 5_000;

/**
 * What a look did: events found in the pages of their publisher, handled or failed here, and left out, since the claim
 * of them and their neighbours timed out; and gaps given up.
 */
interface Tally {
  found: number;
  taken: number;
  failed: number;
  leftOut: number;
  lost: number;
  /** Of `performance.now()`. */
  untilMs: number;
}

const tallyFromNow = (): Tally => {
  const untilMs = performance.now() + lookForMs;
  return { found: 0, taken: 0, failed: 0, leftOut: 0, lost: 0, untilMs };
};

/**
 * Finds the events of one sequence that were published and never came, and asks their publisher for them. The broker
 * may lose, double or reorder whatever it likes: each event names the position of the one before it of the same name,
 * so a consumer sees a gap when the next one comes, and asks from time to time what comes after its last. What it is
 * given goes the way of any delivery, by the inbox, so that it has its effect once.
 *
 * Replicas share what is missing: each claims some events at a time in the inbox, and leaves those of the others alone.
 * What was claimed and has not had its effect, because that failed or the process died, is fetched again later, by any.
 */
export class MissingOfSequence {
  readonly #logger = new Logger('Events');
  readonly #failed = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #rounds = new Rounds(() => this.lookSafely());
  /** The last event that had come when it was last looked; undefined: what comes after it is asked for anyway. */
  #lastSeen: number | undefined;
  /** Begins anew where the database may have lost what came last, as in a failover. */
  #filledTo = 0;
  #lastPosition = 0;
  /** Since when the publisher has not answered, in ms of `performance.now()`. */
  #silentSince: number | undefined;
  #isBegun = false;
  #stopping = false;
  #looks = 0;
  #count = 0;

  constructor(
    private readonly received: ReceivedEvents,
    private readonly source: EventSource,
    private readonly consumer: EventConsumer,
    private readonly sequence: Sequence,
    private readonly rules: RecoveryRules,
    private readonly turns: FairSemaphore,
  ) {}

  start(): void {
    this.#rounds.start();
  }

  lookNow(): void {
    this.#lastSeen = undefined;
    this.#looks = 0;
    this.#rounds.wake();
  }

  /** Events that are known to be missing, as of the last look, and gaps that were given up. */
  get count(): number {
    return this.#count;
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#rounds.stop();
  }

  /** Returns the milliseconds until the next look. */
  private async lookSafely(): Promise<number> {
    try {
      const goesOnAtOnce = await this.look();
      this.#silentSince = undefined;
      if (goesOnAtOnce) return 0;
    } catch (error) {
      this.#filledTo = 0;
      if (this.#isBegun) this.#noteSilence();
      this.#tellUnchecked(error);
    }
    this.#looks += 1;
    return backOffMs(pausesOf(this.rules), this.#looks);
  }

  #tellUnchecked(error: unknown): void {
    // A publisher that is away is asked again; that a service is not deployed at all is nothing to tell.
    if (isAppError(error) && (error.code === 'unavailable' || error.code === 'deadline_exceeded')) return;
    const { eventName } = this.sequence;
    this.#failed.log('check', { message: `Cannot check for missing ${eventName}; retrying: ${describeError(error)}` });
  }

  #noteSilence(): void {
    this.#silentSince ??= performance.now();
    if (performance.now() - this.#silentSince < silentMs) return;
    const { consumer, publisher, eventName } = this.sequence;
    const message = `${consumer}: cannot reach ${publisher} to check for missing ${eventName}, for a minute or longer; missing events stay undetected meanwhile.`;
    this.#failed.log('silent', { message });
  }

  /** Returns whether the next look, for what this one has left, is at once. */
  private async look(): Promise<boolean> {
    const progress = await this.received.progress(this.sequence);
    this.#isBegun = progress !== undefined;
    if (!progress) {
      await this.begin();
      return false;
    }
    const received = await this.received.look(this.sequence, progress.position, this.rules, this.#filledTo);
    const { last, gaps, due, untaken } = received;
    this.#filledTo = last < this.#lastPosition ? 0 : received.filledTo;
    this.#lastPosition = last;
    // Where events still come in, the next one will tell whether there was one before it.
    const isQuiet = this.#lastSeen === last || this.#lastSeen === undefined;
    this.#lastSeen = last;
    const asked = merged(gaps);
    // Until the look is over, which may take long.
    this.#count = Math.max(this.#count, progress.lost + untaken + asked.length);
    const fresh = tallyFromNow();
    let again: Tally;
    let isAll: boolean;
    try {
      isAll = await this.fillAll([...asked.slice(0, mostGaps), ...(isQuiet ? [{ after: last }] : [])], fresh, ofNew);
    } finally {
      again = tallyFromNow();
      await this.fillAll(merged(due), again, ofDue).finally(() => {
        this.#tellFetched(fresh.taken + again.taken, fresh.failed);
      });
    }
    const hasMore = !isAll || asked.length > mostGaps;
    // What came since was fetched here.
    if (hasMore) this.#lastSeen = undefined;
    // What is left counts as one: how many there are, only their publisher knows.
    const ofFresh = fresh.failed + fresh.leftOut + fresh.lost + Number(hasMore);
    this.#count = progress.lost + untaken - again.taken + again.lost + ofFresh;
    return again.taken > 0 || (hasMore && fresh.taken > 0);
  }

  /** What was published before anybody awaited it, and is kept, is awaited too. */
  private async begin(): Promise<void> {
    const { forgotten_up_to } = await this.ask({ after: 0, upTo: 0 });
    await this.received.begin(this.sequence, forgotten_up_to);
  }

  /** Fetches events of the gaps until the look is over. Returns whether those are all. */
  private async fillAll(gaps: readonly Gap[], tally: Tally, kind: typeof ofNew | typeof ofDue): Promise<boolean> {
    for (const gap of gaps) {
      await this.fill(gap, tally, kind);
      if (this.isOver(tally)) return false;
    }
    return true;
  }

  /** Fetches the events of a gap, page by page. */
  private async fill(gap: Gap, tally: Tally, kind: typeof ofNew | typeof ofDue): Promise<void> {
    const { after, upTo = Infinity } = gap;
    for (let end = after; !this.isOver(tally);) {
      const { events, forgotten_up_to, has_none } = await this.ask({ ...gap, after: end });
      if (end === after) {
        const gone = has_none && upTo !== Infinity ? upTo : Math.min(forgotten_up_to, upTo);
        if (gone > after) tally.lost += await this.giveUp(after, gone);
      }
      const page = events.map((event) => delivered(this.sequence, event));
      for (let at = 0; at < page.length && !this.isOver(tally); at += kind.atATime)
        await this.takeSome(page.slice(at, at + kind.atATime), tally, kind);
      const lastOfPage = events.at(-1);
      if (!lastOfPage) return;
      tally.found += events.length;
      end = lastOfPage.position;
    }
  }

  /** Claims and handles events when it is the consumer's turn. The wait takes nothing from the time of the look. */
  private takeSome(events: readonly DomainEvent[], tally: Tally, kind: typeof ofNew | typeof ofDue): Promise<void> {
    const waitingSinceMs = performance.now();
    const work = async () => {
      tally.untilMs += performance.now() - waitingSinceMs;
      if (!this.#stopping) await this.claimAndHandle(events, tally, kind);
    };
    return this.turns.run(work, { key: this.consumer.name });
  }

  /** Handles those that nobody else has. */
  private async claimAndHandle(
    events: readonly DomainEvent[],
    tally: Tally,
    { claim, attempt }: typeof ofNew | typeof ofDue,
  ): Promise<void> {
    const claimedAtMs = performance.now();
    let own: ReadonlySet<string>;
    try {
      own = await this.received[claim](this.sequence, events, this.rules.untakenMs);
    } catch (error) {
      // One of them is in a delivery that has not ended. The wait for it takes no time from the others, but once.
      if (!isStatementTimeout(error)) throw error;
      if (tally.leftOut === 0) tally.untilMs += performance.now() - claimedAtMs;
      tally.leftOut += events.length;
      this.#tellLeftOut(events.length);
      return;
    }
    const mine = events.filter(({ id }) => own.has(id));
    await this.handle(mine, { attempt, claimedAtMs }, tally);
  }

  private isOver({ found, untilMs }: Tally): boolean {
    return this.#stopping || found >= mostFetched || performance.now() >= untilMs;
  }

  /**
   * One after the other. Those that fail, and those that a stop leaves, are fetched again. The claim of those that are
   * left is renewed in good time, which a process that hangs does not do.
   */
  private async handle(
    events: readonly DomainEvent[],
    { attempt, claimedAtMs }: { attempt: number; claimedAtMs: number },
    tally: Tally,
  ): Promise<void> {
    const { untakenMs } = this.rules;
    let renewAtMs = claimedAtMs + untakenMs / 2;
    for (const [at, event] of events.entries()) {
      if (this.#stopping) return void (await this.postpone(events.slice(at), 0));
      if (performance.now() >= renewAtMs && (await this.postpone(events.slice(at), untakenMs)))
        renewAtMs = performance.now() + untakenMs / 2;
      const outcome = await this.consumer.take(event, attempt);
      tally[outcome === 'done' ? 'taken' : 'failed'] += 1;
      if (outcome === 'done') continue;
      const againMs = Math.max(outcome.retryAfterMs, this.rules.checkEveryMs / 2);
      await this.postpone([event], againMs);
    }
  }

  /**
   * Has claimed events fetched again after `ms`. Returns false where a delivery of one of them does not end: then they
   * are when their claim is over.
   */
  private async postpone(events: readonly DomainEvent[], ms: number): Promise<boolean> {
    try {
      const ids = events.map(({ id }) => id);
      await this.received.postpone(this.consumer.name, ids, ms);
      return true;
    } catch (error) {
      if (!isStatementTimeout(error)) throw error;
      return false;
    }
  }

  #tellLeftOut(count: number): void {
    const { consumer, eventName } = this.sequence;
    const message = `${consumer}: ${count} missing ${eventName} wait for the next look, since a delivery of one of them has not ended or the database is slow.`;
    this.#failed.log('left out', { message });
  }

  /** Lost, late, or from before anybody awaited them: that cannot be told apart. */
  #tellFetched(taken: number, failed: number): void {
    if (taken + failed === 0) return;
    const { consumer, publisher, eventName } = this.sequence;
    const outcome = failed > 0 ? `${failed} of them failed and will be retried.` : 'all of them were handled.';
    this.#logger.warn(`${consumer}: ${taken + failed} missing ${eventName} fetched from ${publisher}; ${outcome}`);
  }

  private async giveUp(after: number, upTo: number): Promise<number> {
    if (!(await this.received.giveUp(this.sequence, after, upTo))) return 0;
    const { consumer, publisher, eventName } = this.sequence;
    this.#logger.error(
      `${consumer}: ${eventName} after position ${after}, up to ${upTo}, are lost; ${publisher} no longer keeps them.`,
    );
    return 1;
  }

  private ask({ after, upTo }: Gap) {
    const { publisher, eventName } = this.sequence;
    const range = { after, ...(upTo !== undefined && { up_to: upTo }) };
    return this.source.read(publisher, { event_name: eventName, ...range, published_before_ms: this.rules.graceMs });
  }
}

/** Neighbours are one gap, which is asked for by pages. */
function merged(gaps: readonly Gap[]): Gap[] {
  const all: Gap[] = [];
  for (const gap of gaps) {
    const last = all.at(-1);
    if (last && last.upTo === gap.after) all[all.length - 1] = { ...gap, after: last.after };
    else all.push(gap);
  }
  return all;
}

function delivered({ publisher, eventName }: Sequence, event: PublishedEvent): DomainEvent {
  const { id, position, previous, payload, occurred_at, request_id, traceparent } = event;
  return {
    id,
    name: eventName,
    payload,
    occurredAt: occurred_at,
    publisher,
    position,
    previous,
    ...(request_id !== undefined && { requestId: request_id }),
    ...(traceparent !== undefined && { traceparent }),
  };
}
