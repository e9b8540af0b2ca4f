import type { PublishedEvent } from '@atoll/contracts';
import { isAppError } from '@atoll/errors';
import { backOffMs, Rounds, ThrottledLog } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { DomainEvent, EventConsumer } from './courier.js';
import { describeError } from './error-description.js';
import type { EventSource } from './event-source.js';
import type { Gap, ReceivedEvents, Sequence } from './received-events.js';

export interface RecoveryRules {
  /** Between two looks for events that are missing. */
  readonly checkEveryMs: number;
  /** How long an event may be on its way before it counts as missing. */
  readonly graceMs: number;
  /**
   * How long after it came an event that has not had its effect is asked for again: longer than the broker's last try
   * of a failing event can take.
   */
  readonly untakenMs: number;
}

export const defaultRecoveryRules: RecoveryRules = { checkEveryMs: 15_000, graceMs: 5_000, untakenMs: 90_000 };

/** A publisher that has not answered for this time is logged, since missing events stay undetected meanwhile. */
const silentMs = 60_000;
/** After the first look; doubled from look to look. */
const firstPauseMs = 1_000;

/** Fetched events of a sequence that are kept for another try; those beyond are fetched again after `untakenMs`. */
const mostAgain = 1_000;
/** Gaps that are asked for in one look; where they could be filled, the next look, for others, is at once. */
const mostGaps = 20;
/** Events of a sequence after which the others have their turn. The next look, for the rest, is at once. */
const mostFetched = 400;

/** A fetched event whose effect failed. The courier knows nothing of it. */
interface Again {
  readonly event: DomainEvent;
  readonly attempt: number;
  /** Of `performance.now()`. */
  readonly atMs: number;
}

/** A consumer, and the publisher of each event that it handles; undefined if any service may publish it. */
export interface Awaiting {
  readonly consumer: EventConsumer;
  readonly events: readonly { readonly name: string; readonly publisher: string | undefined }[];
}

/**
 * Finds the events that were published and never came, and asks their publishers for them. The broker may lose, double
 * or reorder whatever it likes: each event names the position of the one before it of the same name, so a consumer sees
 * a gap when the next one comes, and asks from time to time what comes after its last. What it is given goes the way of
 * any delivery, by the inbox, so that it has its effect once.
 */
export class MissingEvents {
  readonly #logger = new Logger('Events');
  readonly #failed = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #rounds = new Rounds(() => this.checkAll());
  /** By sequence: events that are known to be missing, and the last one that had come when it was last looked. */
  readonly #missing = new Map<string, number>();
  readonly #lastSeen = new Map<string, number>();
  /** By sequence: what the last look has left of a gap. */
  readonly #rest = new Map<string, Gap>();
  /** By sequence, then by event. */
  readonly #again = new Map<string, Map<string, Again>>();
  /** By sequence: since when its publisher has not answered, in ms of `performance.now()`. */
  readonly #silentSince = new Map<string, number>();
  /** Sequences that could not be checked when they were last looked at. */
  readonly #unchecked = new Set<string>();
  #stopping = false;
  #looks = 0;
  #goesOnAtOnce = false;
  /** In ms of `performance.now()`: a look at once leaves out, until then, what could not be checked. */
  #nextOfAllMs = 0;

  constructor(
    private readonly received: ReceivedEvents,
    private readonly source: EventSource,
    private readonly awaiting: readonly Awaiting[],
    private readonly rules: RecoveryRules,
  ) {}

  start(): void {
    this.#rounds.start();
  }

  /** Looks at once, as when the stream may have been made anew. */
  readonly lookNow = (): void => {
    this.#lastSeen.clear();
    this.#looks = 0;
    this.#rounds.wake();
  };

  /**
   * Events that their publishers have and a consumer of this service does not, as of the last look, and gaps that were
   * given up.
   */
  get count(): number {
    return [...this.#missing.values()].reduce((sum, count) => sum + count, 0);
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#rounds.stop();
  }

  /** Returns the milliseconds until the next look. */
  private async checkAll(): Promise<number> {
    const ofAll = !this.#goesOnAtOnce || performance.now() >= this.#nextOfAllMs;
    this.#goesOnAtOnce = false;
    for (const { consumer, events } of this.awaiting) {
      for (const { name, publisher } of events) await this.check(consumer, name, publisher, ofAll);
    }
    // From its end: with publishers that hang, a look of all may take longer than the time between two.
    if (ofAll) this.#nextOfAllMs = performance.now() + this.rules.checkEveryMs;
    if (this.#goesOnAtOnce) return 0;
    this.#looks += 1;
    // Sooner at first: after a crash what was on its way is back in seconds, and not when the broker repeats it.
    return backOffMs({ firstMs: firstPauseMs, maxMs: this.rules.checkEveryMs, jitter: 0 }, this.#looks);
  }

  private async check(
    consumer: EventConsumer,
    eventName: string,
    owner: string | undefined,
    ofAll: boolean,
  ): Promise<void> {
    try {
      const publishers = owner === undefined ? await this.received.publishersOf(consumer.name, eventName) : [owner];
      for (const publisher of publishers) {
        const sequence = { consumer: consumer.name, publisher, eventName };
        const key = keyOf(sequence);
        if (!this.#stopping && (ofAll || !this.#unchecked.has(key))) await this.checkSequence(consumer, sequence, key);
      }
    } catch (error) {
      this.#tellUnchecked(eventName, error);
    }
  }

  private async checkSequence(consumer: EventConsumer, sequence: Sequence, key: string): Promise<void> {
    let isBegun = false;
    try {
      const progress = await this.received.progress(sequence);
      isBegun = progress !== undefined;
      if (progress) await this.look(consumer, sequence, key, progress);
      else await this.begin(sequence);
      this.#silentSince.delete(key);
      this.#unchecked.delete(key);
    } catch (error) {
      if (isBegun) this.#noteSilence(sequence, key);
      this.#unchecked.add(key);
      this.#tellUnchecked(sequence.eventName, error);
    }
  }

  #tellUnchecked(eventName: string, error: unknown): void {
    // A publisher that is away is asked again; that a service is not deployed at all is nothing to tell.
    if (isAppError(error) && (error.code === 'unavailable' || error.code === 'deadline_exceeded')) return;
    this.#failed.log(eventName, {
      message: `Cannot check for missing ${eventName}; retrying: ${describeError(error)}`,
    });
  }

  #noteSilence({ consumer, publisher, eventName }: Sequence, key: string): void {
    const since = this.#silentSince.get(key) ?? performance.now();
    this.#silentSince.set(key, since);
    if (performance.now() - since < silentMs) return;
    const message = `${consumer}: cannot reach ${publisher} to check for missing ${eventName}, for a minute or longer; missing events stay undetected meanwhile.`;
    this.#failed.log(`silent ${key}`, { message });
  }

  private async look(
    consumer: EventConsumer,
    sequence: Sequence,
    key: string,
    progress: { position: number; lost: number },
  ): Promise<void> {
    const { last, gaps } = await this.received.look(sequence, progress.position, this.rules);
    // Where events still come in, the next one will tell whether there was one before it.
    const isQuiet = this.#lastSeen.get(key) === last || !this.#lastSeen.has(key);
    this.#lastSeen.set(key, last);
    const left = await this.tryAgain(consumer, key);
    const kept = new Set([...(this.#again.get(key)?.values() ?? [])].map(({ event }) => event.position));
    const unasked: Gap[] = merged(gaps.filter(({ upTo }) => !kept.has(upTo)));
    const rest = this.#rest.get(key);
    const others = unasked.filter((gap) => !rest || areApart(gap, rest));
    const isTailAsked = isQuiet && !(rest && rest.upTo === undefined);
    const asked = [...(rest ? [rest] : []), ...others.slice(0, mostGaps), ...(isTailAsked ? [{ after: last }] : [])];
    const { missing, taken, isAll } = await this.fillAll(consumer, sequence, key, asked);
    const hasMore = !isAll || others.length > mostGaps;
    if (hasMore && taken > 0) this.#goesOnAtOnce = true;
    // What is left counts as one: how many there are, only their publisher knows.
    this.#missing.set(key, progress.lost + left + missing + Number(hasMore));
  }

  /**
   * Fetches `mostFetched` events of the gaps, or a page more. `missing`: how many could not be handled, or are lost;
   * `taken`: how many were handled.
   */
  private async fillAll(
    consumer: EventConsumer,
    sequence: Sequence,
    key: string,
    gaps: readonly Gap[],
  ): Promise<{ missing: number; taken: number; isAll: boolean }> {
    const all = { found: 0, failed: 0, lost: 0 };
    let rest: Gap | undefined;
    try {
      for (const gap of gaps) {
        const filled = await this.fill(consumer, sequence, key, { gap, room: mostFetched - all.found });
        for (const count of ['found', 'failed', 'lost'] as const) all[count] += filled[count];
        if (all.found < mostFetched) continue;
        rest = { ...gap, after: filled.end };
        break;
      }
    } finally {
      this.#tellFetched(sequence, all.found, all.failed);
    }
    if (rest) this.#rest.set(key, rest);
    else this.#rest.delete(key);
    return { missing: all.failed + all.lost, taken: all.found - all.failed, isAll: rest === undefined };
  }

  /** What was published before anybody awaited it, and is kept, is awaited too. */
  private async begin(sequence: Sequence): Promise<void> {
    const { forgotten_up_to } = await this.ask(sequence, { after: 0, upTo: 0 });
    await this.received.begin(sequence, forgotten_up_to);
  }

  /** Fetches the events of a gap, page by page, while there is room. */
  private async fill(
    consumer: EventConsumer,
    sequence: Sequence,
    key: string,
    { gap, room }: { gap: Gap; room: number },
  ): Promise<{ found: number; failed: number; lost: number; end: number }> {
    const { after, upTo = Infinity } = gap;
    let [found, failed, lost, end] = [0, 0, 0, after];
    while (found < room && !this.#stopping) {
      const { events, forgotten_up_to, has_none } = await this.ask(sequence, { ...gap, after: end });
      if (found === 0) {
        const gone = has_none && upTo !== Infinity ? upTo : Math.min(forgotten_up_to, upTo);
        if (gone > after) lost += await this.giveUp(sequence, after, gone);
      }
      for (const event of events)
        if (!(await this.take(consumer, key, { event: delivered(sequence, event), attempt: 2 }))) failed += 1;
      const lastOfPage = events.at(-1);
      if (!lastOfPage) break;
      found += events.length;
      end = lastOfPage.position;
    }
    return { found, failed, lost, end };
  }

  /** Lost, late, or from before anybody awaited them: that cannot be told apart. */
  #tellFetched({ consumer, publisher, eventName }: Sequence, found: number, failed: number): void {
    if (found === 0) return;
    const outcome = failed > 0 ? `${failed} of them failed and will be retried.` : 'all of them were handled.';
    this.#logger.warn(`${consumer}: ${found} missing ${eventName} fetched from ${publisher}; ${outcome}`);
  }

  /** Whether nothing is left to do for the event; otherwise it is kept for another try. */
  private async take(
    consumer: EventConsumer,
    key: string,
    { event, attempt }: Pick<Again, 'event' | 'attempt'>,
  ): Promise<boolean> {
    const outcome = await consumer.take(event, attempt);
    const kept = this.#again.get(key) ?? new Map<string, Again>();
    kept.delete(event.id);
    if (outcome !== 'done' && kept.size < mostAgain)
      kept.set(event.id, { event, attempt: attempt + 1, atMs: performance.now() + outcome.retryAfterMs });
    if (kept.size > 0) this.#again.set(key, kept);
    else this.#again.delete(key);
    return outcome === 'done';
  }

  /** Those that are due. Returns how many are left. */
  private async tryAgain(consumer: EventConsumer, key: string): Promise<number> {
    for (const again of [...(this.#again.get(key)?.values() ?? [])])
      if (!this.#stopping && again.atMs <= performance.now()) await this.take(consumer, key, again);
    return this.#again.get(key)?.size ?? 0;
  }

  private async giveUp(sequence: Sequence, after: number, upTo: number): Promise<number> {
    if (!(await this.received.giveUp(sequence, after, upTo))) return 0;
    const { consumer, publisher, eventName } = sequence;
    this.#logger.error(
      `${consumer}: ${eventName} after position ${after}, up to ${upTo}, are lost; ${publisher} no longer keeps them.`,
    );
    return 1;
  }

  private ask({ publisher, eventName }: Sequence, { after, upTo }: Gap) {
    const range = { after, ...(upTo !== undefined && { up_to: upTo }) };
    return this.source.read(publisher, { event_name: eventName, ...range, published_before_ms: this.rules.graceMs });
  }
}

function keyOf({ consumer, publisher, eventName }: Sequence): string {
  return `${consumer} ${publisher} ${eventName}`;
}

function areApart(one: Gap, other: Gap): boolean {
  return (one.upTo ?? Infinity) <= other.after || (other.upTo ?? Infinity) <= one.after;
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
