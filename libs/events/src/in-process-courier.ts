import {
  CourierAway,
  type Courier,
  type CourierLink,
  type DomainEvent,
  type EventConsumer,
  type Outcome,
} from './courier.js';

interface Member {
  readonly lanes: readonly Lane[];
  readonly onReady: () => void;
}

/** One consumer's deliveries, one after the other. */
class Lane {
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly consumer: EventConsumer) {}

  takes(eventName: string): boolean {
    return this.consumer.eventNames.includes(eventName);
  }

  deliver(event: DomainEvent, attempt: number): Promise<Outcome> {
    const delivered = this.#last.then(() => this.consumer.take(event, attempt));
    this.#last = delivered;
    return delivered;
  }

  async finished(): Promise<void> {
    await this.#last;
  }
}

/**
 * Delivers within one process, between Nest applications that share this object: straight from the outbox of one
 * service to the consumers of all. An event is done once each of its consumers has taken it or put it among its dead
 * letters; until then it stays in the outbox, so that a crash loses nothing.
 *
 * It delivers only while every one of its services is there: a service that is still starting, or away, finds its
 * events afterwards.
 */
export class InProcessCourier implements Courier {
  readonly #services: ReadonlySet<string>;
  readonly #members = new Map<string, Member>();

  constructor(options: { services: readonly string[] }) {
    this.#services = new Set(options.services);
  }

  join(service: string, consumers: readonly EventConsumer[], onReady: () => void): CourierLink {
    if (!this.#services.has(service))
      throw new Error(`${service} is not a service of this courier: ${[...this.#services].join(', ')}.`);
    if (this.#members.has(service)) throw new Error(`${service} has already joined this courier.`);
    const member = { lanes: consumers.map((consumer) => new Lane(consumer)), onReady };
    this.#members.set(service, member);
    if (this.missing().length === 0) for (const { onReady: tell } of this.#members.values()) tell();
    return {
      publish: (event, attempt) => this.publish(event, attempt),
      status: () => this.status(),
      stopDelivering: () => this.leave(service, member),
      close: () => this.leave(service, member),
    };
  }

  private async publish(event: DomainEvent, attempt: number): Promise<Outcome> {
    const { ready, reason } = this.status();
    if (!ready) throw new CourierAway(reason);
    const lanes = [...this.#members.values()].flatMap((member) =>
      member.lanes.filter((lane) => lane.takes(event.name)),
    );
    const outcomes = await Promise.all(lanes.map((lane) => lane.deliver(event, attempt)));
    // The longest wait: each consumer's back-off is kept, and those who have taken the event are not bothered with it.
    return outcomes.reduce((longest, outcome) => (waitOf(outcome) > waitOf(longest) ? outcome : longest), 'done');
  }

  private status(): { ready: boolean; reason?: string } {
    const missing = this.missing();
    return missing.length === 0 ? { ready: true } : { ready: false, reason: `events wait for ${missing.join(', ')}` };
  }

  private missing(): string[] {
    return [...this.#services].filter((service) => !this.#members.has(service));
  }

  private async leave(service: string, member: Member): Promise<void> {
    if (this.#members.get(service) === member) this.#members.delete(service);
    await Promise.all(member.lanes.map((lane) => lane.finished()));
  }
}

function waitOf(outcome: Outcome): number {
  return outcome === 'done' ? 0 : outcome.retryAfterMs;
}
