import { backOffMs, ThrottledLog, WakeUp, type BackOff } from '@atoll/waiting';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { CourierAway, type CourierLink, type Outcome } from './courier.js';
import { describeError } from './error-description.js';
import { RelaySession, type Waiting } from './relay-session.js';

/** Events that the courier holds at one time. */
const maxInHand = 256;
/**
 * After so long without a statement PostgreSQL ends the session that relays. The outbox is polled four times as often,
 * as a fallback: commits normally wake the relay.
 */
export const defaultMaxSilenceMs = 20_000;
const pollsInSilence = 4;
/** Between two attempts to become the process that relays. */
const standbyMs = 1_000;
/** Between two notifications of the process that relays: all commits within it share one. */
const notifyGapMs = 20;
/**
 * Between two fetches, so that a burst of commits is relayed in batches; the first event of a burst waits for nothing.
 */
const gatherMs = 5;
/**
 * The same while so many come at a time that what a fetch costs counts: it is about the same for one event as for a
 * hundred.
 */
const busy = { fetched: 16, gatherMs: 25 };
/** After the courier failed as a whole while it seemed ready. */
export const courierPauseMs = 1_000;
/** Partitions are made two days ahead. */
const renewEveryMs = 3_600_000;
const reconnect: BackOff = { firstMs: 100, maxMs: 2_000 };
const unpublishable: BackOff = { firstMs: 1_000, maxMs: 60_000 };
/**
 * An event that is due after so many milliseconds is looked for a little later: a timer may come a millisecond early,
 * and this process's time may pass a thousandth faster than the database's. A look that is too early finds nothing, and
 * the next one is seconds away.
 */
const lateByMs = (afterMs: number): number => 5 + afterMs / 1_000;
/** How long a stop waits for events in progress. Unfinished ones are delivered again. */
const stopPatienceMs = 10_000;

/**
 * Numbers the service's outbox, hands it to the courier in that order, and sets aside what the courier is done with.
 * One process of a service relays at a time; if two do for a moment, events are delivered twice and the inbox discards
 * the copies.
 */
export class Relay {
  readonly #logger = new Logger('Events');
  readonly #lost = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #wakeUp = new WakeUp();
  readonly #inHand = new Set<string>();
  readonly #pollMs: number;
  /** This and all other times here are of `performance.now()`: a clock that is set back makes nothing wait. */
  readonly #dueAtMs = new Set<number>();
  #settled: { id: string; outcome: Outcome }[] = [];
  #look = true;
  #session: RelaySession | undefined;
  /** Why the last session ended or could not be opened. */
  #failure = 'not connected yet';
  #commitsToNotify = false;
  #notifiedAtMs = -Infinity;
  #triedToLeadAtMs = -Infinity;
  #pausedUntilMs = 0;
  #isAway = false;
  #fetchedAtMs = -Infinity;
  #checkedAtMs = -Infinity;
  #gatherMs = gatherMs;
  #renewedAtMs = performance.now();
  #stopAtMs = Infinity;
  #running: Promise<void> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly link: CourierLink,
    private readonly relaying: {
      readonly service: string;
      readonly processId: string;
      readonly maxSilenceMs: number;
    },
  ) {
    this.#pollMs = relaying.maxSilenceMs / pollsInSilence;
  }

  start(): void {
    this.#running = this.run();
  }

  /** The courier can publish, for the first time or again. */
  readonly courierReady = (): void => {
    this.#pausedUntilMs = 0;
    this.#triedToLeadAtMs = -Infinity;
    this.look();
  };

  /** Events of this process have been committed. */
  readonly committed = (): void => {
    if (this.#session?.isLeading) return this.look();
    this.#commitsToNotify = true;
    this.#wakeUp.ring();
  };

  status(): { ready: boolean; reason?: string } {
    return this.#session
      ? { ready: true }
      : { ready: false, reason: `the relay of events cannot use the database: ${this.#failure}` };
  }

  /** Fetches no more, waits for what is in hand, and lets another process take over. */
  async stop(): Promise<void> {
    this.#stopAtMs = performance.now() + stopPatienceMs;
    this.#wakeUp.ring();
    await this.#running;
  }

  private readonly look = (): void => {
    this.#look = true;
    this.#wakeUp.ring();
  };

  private async run(): Promise<void> {
    for (let failures = 0; !this.stopped();) {
      try {
        await this.runSession(() => {
          if (failures > 0) this.#lost.forget();
          failures = 0;
        });
      } catch (error) {
        // What is in hand can be settled no more, and is delivered again by the next process.
        if (this.stopping()) return;
        failures += 1;
        this.#failure = describeError(error);
        this.#lost.log('session', { message: `The relay of events cannot use the database: ${this.#failure}` });
        await this.#wakeUp.wait(backOffMs(reconnect, failures));
      }
    }
  }

  private async runSession(onWorking: () => void): Promise<void> {
    const session = await RelaySession.open(this.dataSource, this.relaying, this.look);
    try {
      this.#session = session;
      this.#triedToLeadAtMs = -Infinity;
      while (!this.stopped()) {
        await this.turn(session);
        onWorking();
      }
    } catch (error) {
      throw session.lost ?? error;
    } finally {
      this.#session = undefined;
      await session.close();
    }
  }

  private async turn(session: RelaySession): Promise<void> {
    if (session.lost || performance.now() >= this.#checkedAtMs + this.#pollMs) {
      await session.check();
      this.#checkedAtMs = performance.now();
    }
    // Before anything is settled, which needs the partition of today: to lead makes it too, as after days without the
    // database.
    const leads = session.isLeading || (await this.tryToLead(session));
    if (leads && performance.now() > this.#renewedAtMs + renewEveryMs) {
      await session.renewPartitions();
      this.#renewedAtMs = performance.now();
    }
    await this.settle(session);
    // A process that cannot publish must not keep the others from it.
    if (!this.link.status().ready) await session.resign();
    if (!session.isLeading) return this.standBy(session);
    const room = maxInHand - this.#inHand.size;
    if (!this.#look || room === 0 || this.stopping() || performance.now() < this.#pausedUntilMs) return this.rest();
    const gatherForMs = this.#fetchedAtMs + this.#gatherMs - performance.now();
    if (gatherForMs > 0) await delay(gatherForMs);
    this.#look = false;
    this.#fetchedAtMs = performance.now();
    const waiting = await session.fetch(room, [...this.#inHand]);
    this.#look ||= waiting.length === room;
    this.#gatherMs = waiting.length < busy.fetched ? gatherMs : busy.gatherMs;
    for (const one of waiting) this.hand(one);
  }

  private async tryToLead(session: RelaySession): Promise<boolean> {
    if (this.stopping() || !this.link.status().ready || performance.now() < this.#triedToLeadAtMs + standbyMs)
      return false;
    this.#triedToLeadAtMs = performance.now();
    const leads = await session.lead();
    // Commits before it were signalled to nobody here.
    if (leads) this.#look = true;
    return leads;
  }

  /** Another process relays: it is notified of the commits of this one, and replaced when it is gone. */
  private async standBy(session: RelaySession): Promise<void> {
    const notifyInMs = this.#notifiedAtMs + notifyGapMs - performance.now();
    if (this.#commitsToNotify && notifyInMs <= 0) {
      this.#commitsToNotify = false;
      await session.notify();
      this.#notifiedAtMs = performance.now();
      return;
    }
    if (this.stopped()) return;
    await this.#wakeUp.wait(this.#commitsToNotify ? notifyInMs : Math.min(standbyMs, this.#pollMs));
  }

  private hand({ event, attempt }: Waiting): void {
    const { id } = event;
    this.#inHand.add(id);
    this.link
      .publish({ ...event, publisher: this.relaying.service }, attempt)
      .then((outcome) => {
        this.published();
        this.#settled.push({ id, outcome });
      })
      .catch((error: unknown) => {
        if (error instanceof CourierAway) {
          this.#inHand.delete(id);
          this.pause(error);
        } else {
          const outcome = { retryAfterMs: backOffMs(unpublishable, attempt), reason: describeError(error) };
          this.#settled.push({ id, outcome });
        }
      })
      .finally(this.#wakeUp.ring);
  }

  private async settle(session: RelaySession): Promise<void> {
    // A copy: more may be settled while these are written down.
    const settled = [...this.#settled];
    if (settled.length === 0) return;
    const done = settled.filter(({ outcome }) => outcome === 'done').map(({ id }) => id);
    const later = settled.flatMap(({ id, outcome }) => (outcome === 'done' ? [] : [{ id, ...outcome }]));
    if (done.length > 0) await session.keep(done);
    if (later.length > 0) await session.postpone(later);
    const nowMs = performance.now();
    for (const { retryAfterMs } of later) this.#dueAtMs.add(nowMs + retryAfterMs + lateByMs(retryAfterMs));
    for (const { id } of settled) this.#inHand.delete(id);
    this.#settled = this.#settled.slice(settled.length);
  }

  private async rest(): Promise<void> {
    const nowMs = performance.now();
    const paused = this.#pausedUntilMs > nowMs ? [this.#pausedUntilMs] : [];
    const untilMs = Math.min(nowMs + this.#pollMs, this.#stopAtMs, ...this.#dueAtMs, ...paused);
    if (await this.#wakeUp.wait(Math.max(0, untilMs - nowMs))) return;
    this.#look = true;
    for (const dueAtMs of this.#dueAtMs) if (dueAtMs <= untilMs) this.#dueAtMs.delete(dueAtMs);
  }

  private pause(error: CourierAway): void {
    if (!this.#isAway) this.#logger.warn(`Cannot publish events; they wait in the outbox: ${error.message}`);
    this.#isAway = true;
    this.#pausedUntilMs = performance.now() + courierPauseMs;
    this.#look = true;
  }

  private published(): void {
    if (this.#isAway) this.#logger.log('Events are published again.');
    this.#isAway = false;
  }

  private stopping(): boolean {
    return this.#stopAtMs !== Infinity;
  }

  private stopped(): boolean {
    return this.stopping() && (this.#inHand.size === 0 || performance.now() >= this.#stopAtMs);
  }
}
