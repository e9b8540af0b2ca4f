import { ThrottledLog } from '@atoll/rpc';
import { Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { CommitSignal } from './commit-signal.js';
import type { Courier, CourierLink, EventConsumer, StreamUsage } from './courier.js';
import type { Effect, EventConsumers } from './event-consumers.js';
import { FirstUnsignedCut } from './first-unsigned-cut.js';
import type { Inbox } from './inbox.js';
import { Relay } from './relay.js';

/** Far longer than JetStream keeps an event, or than an outage may last: a fact must not come back after its id was forgotten. */
const inboxRetentionMs = 30 * 24 * 3_600_000;
const pruneEveryMs = 3_600_000;

/** A service's part in the traffic of events: begins when the application has started, and ends before its connections do. */
export class Events implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #logger = new Logger('Events');
  readonly #refused = new ThrottledLog(({ message }) => this.#logger.error(message));
  #link: CourierLink | undefined;
  #relay: Relay | undefined;
  #pruning: NodeJS.Timeout | undefined;

  constructor(
    private readonly service: string,
    private readonly courier: Courier,
    private readonly consumers: EventConsumers,
    private readonly inbox: Inbox,
    private readonly dataSource: DataSource,
    private readonly signal: CommitSignal,
    private readonly processId: string,
  ) {}

  onApplicationBootstrap(): void {
    const consumers = [...this.consumers.all()].map(([name, effects]) => this.consumerOf(name, effects));
    const cut = new FirstUnsignedCut(this.dataSource);
    this.#link = this.courier.join(this.service, consumers, () => this.#relay?.courierReady(), cut);
    this.#relay = new Relay(this.dataSource, this.#link, { service: this.service, processId: this.processId });
    this.signal.onCommit(this.#relay.committed);
    this.#relay.start();
    this.#pruning = setInterval(() => void this.prune(), pruneEveryMs).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.#pruning);
    await Promise.all([this.#link?.stopDelivering(), this.#relay?.stop()]);
    await this.#link?.close();
  }

  /** Whether events go out and come in at present. */
  status(): { ready: boolean; reason?: string } {
    if (!this.#link || !this.#relay) return { ready: false, reason: 'events have not started' };
    const relay = this.#relay.status();
    return relay.ready ? this.#link.status() : relay;
  }

  /** How full the broker's stream is; undefined where there is none, or it has not been looked at yet. */
  streamUsage(): StreamUsage | undefined {
    return this.#link?.streamUsage;
  }

  private consumerOf(name: string, effects: ReadonlyMap<string, Effect>): EventConsumer {
    return {
      name,
      eventNames: [...effects.keys()],
      take: async (event, attempt) => {
        const effect = effects.get(event.name);
        if (!effect) return 'done';
        if (mayPublish(event.publisher, effect)) return this.inbox.take(name, effect, event, attempt);
        this.#refused.log(event.name, { message: `${event.name} ${event.id} is ignored: ${event.publisher} may not publish such events.` });
        return 'done';
      },
    };
  }

  private async prune(): Promise<void> {
    try {
      await this.inbox.prune(new Date(Date.now() - inboxRetentionMs));
    } catch (error) {
      this.#logger.warn(`The inbox could not be pruned: ${String(error)}`);
    }
  }
}

/** Who is not known published it with a release before signatures. */
function mayPublish(publisher: string | undefined, { type }: Effect): boolean {
  return publisher === undefined || publisher === type.service || type.publishers === 'any';
}
