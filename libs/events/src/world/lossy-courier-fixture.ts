import type { Courier, CourierLink, DomainEvent, EventConsumer, Outcome } from '../courier.js';

/** What becomes of one event on its way to one consumer. */
export type Fate = 'delivered' | 'dropped' | 'doubled' | 'held';

/** A courier that acknowledges everything and keeps no promise beyond that. */
export class LossyCourier implements Courier {
  readonly #consumers = new Set<EventConsumer>();
  readonly #held: (() => void)[] = [];
  #underWay: Promise<unknown> = Promise.resolve();

  /** `nextFate` is asked once for each event and consumer. */
  constructor(private readonly nextFate: () => Fate) {}

  join(_service: string, consumers: readonly EventConsumer[], onReady: () => void): CourierLink {
    for (const consumer of consumers) this.#consumers.add(consumer);
    queueMicrotask(onReady);
    return {
      publish: (event) => this.publish(event),
      status: () => ({ ready: true }),
      stopDelivering: () => {
        for (const consumer of consumers) this.#consumers.delete(consumer);
        return Promise.resolve();
      },
      close: async () => void (await this.#underWay),
    };
  }

  /** Delivers what was held, the last first. */
  release(): void {
    for (const deliver of this.#held.splice(0).toReversed()) deliver();
  }

  /** Forgets what was held, as a store that is lost. */
  wipe(): void {
    this.#held.length = 0;
  }

  private publish(event: DomainEvent): Promise<Outcome> {
    for (const consumer of this.#consumers) {
      if (!consumer.eventNames.includes(event.name)) continue;
      const deliver = () => this.deliver(consumer, event, 1);
      const fate = this.nextFate();
      if (fate === 'held') this.#held.push(deliver);
      else if (fate !== 'dropped') deliver();
      if (fate === 'doubled') deliver();
    }
    return Promise.resolve('done');
  }

  /** As a broker does: again until it is done, unless its consumer has left. */
  private deliver(consumer: EventConsumer, event: DomainEvent, attempt: number): void {
    const delivered = consumer.take(event, attempt).then((outcome) => {
      if (outcome !== 'done' && this.#consumers.has(consumer)) this.deliver(consumer, event, attempt + 1);
    });
    this.#underWay = Promise.all([this.#underWay, delivered]);
  }
}
