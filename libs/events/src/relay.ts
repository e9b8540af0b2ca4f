import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { backOffMs, type BackOff } from './back-off.js';
import { CourierAway, type CourierLink, type Outcome } from './courier.js';
import { describeError } from './error-description.js';
import { RelaySession, type Waiting } from './relay-session.js';
import { WakeUp } from './wake-up.js';

/** Events that the courier holds at one time. */
const maxInHand = 256;
/** Between two looks at the outbox when nothing rings: a belt, since every commit rings. */
const lookEveryMs = 5_000;
/** Between two tries to become the process that relays. */
const standbyMs = 1_000;
/** After the courier failed as a whole while it seemed ready. */
const courierPauseMs = 1_000;
const reconnect: BackOff = { firstDelayMs: 100, maxDelayMs: 2_000 };
const unpublishable: BackOff = { firstDelayMs: 1_000, maxDelayMs: 60_000 };
/** How long a stop waits for what is in hand. What is not settled by then is delivered again. */
const stopPatienceMs = 10_000;

/**
 * Hands the service's outbox to the courier, oldest first, and forgets what the courier is done with. Of all processes of a service one
 * relays at a time; should two believe so for a moment, events come twice, which the inbox sorts out.
 */
export class Relay {
  readonly #logger = new Logger('Events');
  readonly #wakeUp = new WakeUp();
  readonly #inHand = new Set<string>();
  readonly #dueAtMs = new Set<number>();
  #settled: { id: string; outcome: Outcome }[] = [];
  #look = true;
  #pausedUntilMs = 0;
  #connected = false;
  #stopAtMs = Infinity;
  #running: Promise<void> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly link: CourierLink,
  ) {}

  start(): void {
    this.#running = this.run();
  }

  /** The courier can publish (again): no need to wait for the next look. */
  readonly courierReady = (): void => {
    this.#pausedUntilMs = 0;
    this.look();
  };

  status(): { ready: boolean; reason?: string } {
    return this.#connected ? { ready: true } : { ready: false, reason: 'the relay of events has no connection to the database' };
  }

  /** Fetches no more, waits for what is in hand, and lets another process take over. */
  async stop(): Promise<void> {
    this.#stopAtMs = Date.now() + stopPatienceMs;
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
        await this.runSession(() => (failures = 0));
      } catch (error) {
        // What is in hand can be settled no more, and is delivered again by the next process.
        if (this.stopping()) return;
        failures += 1;
        this.#logger.warn(`The relay lost its connection to the database: ${describeError(error)}`);
        await this.#wakeUp.wait(backOffMs(reconnect, failures));
      }
    }
  }

  private async runSession(onWorking: () => void): Promise<void> {
    const session = await RelaySession.open(this.dataSource, this.look);
    try {
      this.#connected = true;
      while (!this.stopped()) {
        await this.turn(session);
        onWorking();
      }
    } finally {
      this.#connected = false;
      await session.close();
    }
  }

  private async turn(session: RelaySession): Promise<void> {
    await this.settle(session);
    // A process that cannot publish must not keep the others from it.
    if (!this.link.status().ready) await session.resign();
    const leading = this.link.status().ready && (await session.lead());
    if (this.stopped()) return;
    if (!leading) return void (await this.#wakeUp.wait(standbyMs));
    const room = maxInHand - this.#inHand.size;
    if (!this.#look || room === 0 || this.stopping() || Date.now() < this.#pausedUntilMs) return this.rest();
    this.#look = false;
    const waiting = await session.fetch(room, [...this.#inHand]);
    this.#look ||= waiting.length === room;
    for (const one of waiting) this.hand(one);
  }

  private hand({ event, attempt }: Waiting): void {
    const { id } = event;
    this.#inHand.add(id);
    this.link
      .publish(event, attempt)
      .catch((error: unknown): Outcome | undefined => {
        if (error instanceof CourierAway) return void this.pause(error);
        return { retryAfterMs: backOffMs(unpublishable, attempt), reason: describeError(error) };
      })
      .then((outcome) => {
        if (outcome) this.#settled.push({ id, outcome });
        else this.#inHand.delete(id);
        this.#wakeUp.ring();
      })
      .catch(() => undefined);
  }

  private async settle(session: RelaySession): Promise<void> {
    // A copy: more may be settled while these are written down.
    const settled = [...this.#settled];
    if (settled.length === 0) return;
    const done = settled.filter(({ outcome }) => outcome === 'done').map(({ id }) => id);
    const later = settled.flatMap(({ id, outcome }) => (outcome === 'done' ? [] : [{ id, ...outcome }]));
    if (done.length > 0) await session.forget(done);
    if (later.length > 0) await session.postpone(later);
    for (const { retryAfterMs } of later) this.#dueAtMs.add(Date.now() + retryAfterMs);
    for (const { id } of settled) this.#inHand.delete(id);
    this.#settled = this.#settled.slice(settled.length);
  }

  private async rest(): Promise<void> {
    const nowMs = Date.now();
    const paused = this.#pausedUntilMs > nowMs ? [this.#pausedUntilMs] : [];
    const untilMs = Math.min(nowMs + lookEveryMs, this.#stopAtMs, ...this.#dueAtMs, ...paused);
    if (await this.#wakeUp.wait(Math.max(0, untilMs - nowMs))) return;
    this.#look = true;
    for (const dueAtMs of this.#dueAtMs) if (dueAtMs <= untilMs) this.#dueAtMs.delete(dueAtMs);
  }

  private pause(error: CourierAway): void {
    if (this.#pausedUntilMs < Date.now()) this.#logger.warn(`Events wait in the outbox: ${error.message}`);
    this.#pausedUntilMs = Date.now() + courierPauseMs;
    this.#look = true;
  }

  private stopping(): boolean {
    return this.#stopAtMs !== Infinity;
  }

  private stopped(): boolean {
    return this.stopping() && (this.#inHand.size === 0 || Date.now() >= this.#stopAtMs);
  }
}
