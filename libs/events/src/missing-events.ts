import { backOffMs, FairSemaphore, Rounds, ThrottledLog } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { EventConsumer } from './courier.js';
import { describeError } from './error-description.js';
import type { EventSource } from './event-source.js';
import { MissingOfSequence, pausesOf, type RecoveryRules } from './missing-of-sequence.js';
import type { ReceivedEvents } from './received-events.js';

export const defaultRecoveryRules: RecoveryRules = { checkEveryMs: 15_000, graceMs: 5_000, untakenMs: 90_000 };

/** A consumer, and the publisher of each event that it handles; undefined if any service may publish it. */
export interface Awaiting {
  readonly consumer: EventConsumer;
  readonly events: readonly { readonly name: string; readonly publisher: string | undefined }[];
}

/** Looks for the missing events of all consumers of a service, of each sequence for itself. */
export class MissingEvents {
  readonly #logger = new Logger('Events');
  readonly #failed = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #rounds = new Rounds(() => this.findSequences());
  readonly #sequences = new Map<string, MissingOfSequence>();
  /**
   * Consumers that fetch at a time, each for one sequence, since it handles one event at a time anyway. Most
   * connections of the service are left to its requests.
   */
  readonly #turns = new FairSemaphore({ permits: 4, permitsPerKey: 1 });
  #stopping = false;
  #looks = 0;

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
    this.#looks = 0;
    this.#rounds.wake();
    for (const sequence of this.#sequences.values()) sequence.lookNow();
  };

  /**
   * Events that their publishers have and a consumer of this service does not, as of the last looks, and gaps that were
   * given up.
   */
  get count(): number {
    return [...this.#sequences.values()].reduce((sum, { count }) => sum + count, 0);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all([this.#rounds.stop(), ...[...this.#sequences.values()].map((sequence) => sequence.stop())]);
  }

  /** Follows each sequence that is not followed yet. Returns the milliseconds until the next look. */
  private async findSequences(): Promise<number> {
    for (const { consumer, events } of this.awaiting)
      for (const { name, publisher } of events) await this.find(consumer, name, publisher);
    this.#looks += 1;
    return backOffMs(pausesOf(this.rules), this.#looks);
  }

  private async find(consumer: EventConsumer, eventName: string, owner: string | undefined): Promise<void> {
    try {
      const publishers = owner === undefined ? await this.received.publishersOf(consumer.name, eventName) : [owner];
      for (const publisher of publishers) this.follow(consumer, publisher, eventName);
    } catch (error) {
      const message = `Cannot find the publishers of ${eventName}; retrying: ${describeError(error)}`;
      this.#failed.log(eventName, { message });
    }
  }

  private follow(consumer: EventConsumer, publisher: string, eventName: string): void {
    const key = `${consumer.name} ${publisher} ${eventName}`;
    if (this.#stopping || this.#sequences.has(key)) return;
    const sequence = { consumer: consumer.name, publisher, eventName };
    const missing = new MissingOfSequence(this.received, this.source, consumer, sequence, this.rules, this.#turns);
    this.#sequences.set(key, missing);
    missing.start();
  }
}
