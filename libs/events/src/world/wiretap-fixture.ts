import type { Courier, CourierLink, DomainEvent, EventConsumer, Outcome, UnsignedCut } from '../courier.js';

/** Moments in an event's life at which a spec may step in. What throws here fails that step. */
export interface Wiretap {
  beforePublish?(event: DomainEvent): Promise<void> | void;
  afterPublish?(event: DomainEvent): Promise<void> | void;
  beforeTake?(event: DomainEvent, consumer: string): Promise<void> | void;
  /** The effect is committed, and the courier not yet told. */
  afterTake?(event: DomainEvent, consumer: string): Promise<void> | void;
}

/** A courier whose every step is told to `tap`. */
export function wiretapped(courier: Courier, tap: Wiretap): Courier {
  return {
    join(service: string, consumers: readonly EventConsumer[], onReady: () => void, cut?: UnsignedCut): CourierLink {
      const tapped = consumers.map((consumer) => ({
        name: consumer.name,
        eventNames: consumer.eventNames,
        async take(event: DomainEvent, attempt: number): Promise<Outcome> {
          await tap.beforeTake?.(event, consumer.name);
          const outcome = await consumer.take(event, attempt);
          await tap.afterTake?.(event, consumer.name);
          return outcome;
        },
      }));
      const link = courier.join(service, tapped, onReady, cut);
      return {
        get streamUsage() {
          return link.streamUsage;
        },
        status: () => link.status(),
        stopDelivering: () => link.stopDelivering(),
        close: () => link.close(),
        async publish(event: DomainEvent, attempt: number): Promise<Outcome> {
          await tap.beforePublish?.(event);
          const outcome = await link.publish(event, attempt);
          await tap.afterPublish?.(event);
          return outcome;
        },
      };
    },
  };
}
