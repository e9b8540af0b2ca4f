import { ThrottledLog } from '@atoll/waiting';
import { Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { CommitSignal } from './commit-signal.js';
import type { Courier, CourierLink, EventConsumer, Outcome, StreamUsage } from './courier.js';
import type { DeadLetters } from './dead-letters.js';
import type { Effect, EventConsumers } from './event-consumers.js';
import type { EventSource } from './event-source.js';
import { FirstUnsignedCut } from './first-unsigned-cut.js';
import type { Inbox } from './inbox.js';
import { MissingEvents, type Awaiting } from './missing-events.js';
import type { RecoveryRules } from './missing-of-sequence.js';
import { ReceivedEvents } from './received-events.js';
import { Relay } from './relay.js';

const pruneEveryMs = 3_600_000;
/** For what `npm run dead-letters` asks for beside the process; what is asked for in it is taken up at once. */
const retryEveryMs = 5_000;

export interface EventsSurroundings {
  readonly service: string;
  readonly processId: string;
  readonly courier: Courier;
  readonly recovery: RecoveryRules;
  /** How long the process that relays may be silent, until PostgreSQL lets another relay. */
  readonly maxSilenceMs: number;
  /** Where lost events are asked for; without it, none are. */
  readonly source: EventSource | undefined;
}

/**
 * A service's part in the traffic of events: begins when the application has started, and ends before its connections
 * do.
 */
export class Events implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #logger = new Logger('Events');
  readonly #refused = new ThrottledLog(({ message }) => this.#logger.error(message));
  #link: CourierLink | undefined;
  #relay: Relay | undefined;
  #missing: MissingEvents | undefined;
  #pruning: NodeJS.Timeout | undefined;
  #retrying: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(
    private readonly surroundings: EventsSurroundings,
    private readonly consumers: EventConsumers,
    private readonly inbox: Inbox,
    private readonly dataSource: DataSource,
    private readonly signal: CommitSignal,
    private readonly deadLetters: DeadLetters,
  ) {}

  onApplicationBootstrap(): void {
    const { service, processId, courier, source, recovery, maxSilenceMs } = this.surroundings;
    const awaiting = [...this.consumers.all()].map(([name, effects]) => this.awaitingOf(name, effects));
    const consumers = awaiting.map(({ consumer }) => consumer);
    this.#link = courier.join(service, consumers, () => this.courierReady(), new FirstUnsignedCut(this.dataSource));
    this.#relay = new Relay(this.dataSource, this.#link, { service, processId, maxSilenceMs });
    this.signal.onCommit(this.#relay.committed);
    this.#relay.start();
    if (source) this.#missing = new MissingEvents(new ReceivedEvents(this.dataSource), source, awaiting, recovery);
    this.#missing?.start();
    this.#retrying = this.keepRetrying();
    this.#pruning = setInterval(() => void this.prune(), pruneEveryMs).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.#pruning);
    this.#stopping.abort();
    this.deadLetters.retryAsked.ring();
    await Promise.all([this.#retrying, this.#link?.stopDelivering(), this.#relay?.stop(), this.#missing?.stop()]);
    await this.#link?.close();
  }

  /** Whether events go out and come in at present. */
  status(): { ready: boolean; reason?: string } {
    if (!this.#link || !this.#relay) return { ready: false, reason: 'events have not started' };
    const relay = this.#relay.status();
    return relay.ready ? this.#link.status() : relay;
  }

  /** How full the broker's stream is; undefined if there is none, or if it has not been checked yet. */
  streamUsage(): StreamUsage | undefined {
    return this.#link?.streamUsage;
  }

  /** Events that their publishers have published and a consumer of this service does not have, as of the last look. */
  missing(): number {
    return this.#missing?.count ?? 0;
  }

  /** Takes up what operators ask for. */
  private async keepRetrying(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // A database that is away shows in readiness.
      const hasMore = await this.deadLetters.retryRequested(signal).catch(() => false);
      if (!hasMore) await this.deadLetters.retryAsked.wait(retryEveryMs);
    }
  }

  private courierReady(): void {
    this.#relay?.courierReady();
    // The stream may have been made anew.
    this.#missing?.lookNow();
  }

  private awaitingOf(name: string, effects: ReadonlyMap<string, Effect>): Awaiting {
    const events = [...effects.values()].map(({ type }) => ({
      name: type.name,
      publisher: type.publishers === 'any' ? undefined : type.service,
    }));
    return { consumer: this.consumerOf(name, effects), events };
  }

  private consumerOf(name: string, effects: ReadonlyMap<string, Effect>): EventConsumer {
    let last: Promise<unknown> = Promise.resolve();
    return {
      name,
      eventNames: [...effects.keys()],
      take: async (event, attempt) => {
        const effect = effects.get(event.name);
        if (!effect) return 'done';
        if (!mayPublish(event.publisher, effect)) {
          this.#refused.log(event.name, {
            message: `${event.name} ${event.id} is ignored: ${event.publisher} may not publish such events.`,
          });
          return 'done';
        }
        // One after the other, also where the courier delivers while lost events are fetched.
        const taken: Promise<Outcome> = last.then(() => this.inbox.take(name, effect, event, attempt));
        last = taken;
        return taken;
      },
    };
  }

  private async prune(): Promise<void> {
    try {
      await this.inbox.prune();
    } catch (error) {
      this.#logger.warn(`The inbox could not be pruned: ${String(error)}`);
    }
  }
}

/** Who is not known published it with a release before signatures. */
function mayPublish(publisher: string | undefined, { type }: Effect): boolean {
  return publisher === undefined || publisher === type.service || type.publishers === 'any';
}
