import type { EventType } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';

/** What an effect is told beside the payload. */
export interface EventDelivery {
  /** Id of the event: the same at each delivery. */
  readonly id: string;
  readonly occurredAt: Date;
  /** Of the call that caused the event. */
  readonly requestId?: string;
  /** The service that published it; undefined for one of a release that did not sign, and for a dead letter. */
  readonly publisher?: string;
  /** The transaction in which the event is marked as taken: whatever is done through it happens once. */
  readonly manager: EntityManager;
}

export type EventEffect<Payload extends object> = (payload: Payload, delivery: EventDelivery) => Promise<void>;

/** What `OnEvent` says of a method. */
export interface EventSubscription {
  readonly type: EventType;
  readonly consumer: string;
}

const subscriptionKey = Symbol('atoll:on-event');
const declaredConsumers = new Set<string>();
const consumerName = /^[a-z][a-z0-9-]{0,63}$/;

type AnyMethod = (...parameters: never[]) => Promise<void>;

/** As a function type, since the parameters of methods may be narrower than what they are given. */
type Fitting<Payload extends object, Method extends AnyMethod> =
  ((...parameters: Parameters<Method>) => Promise<void>) extends EventEffect<Payload>
    ? TypedPropertyDescriptor<Method>
    : never;

/**
 * Makes a provider's method the effect of an event: it runs in one transaction with the mark that the event was taken,
 * so that it happens once, though it may be tried more often. Do everything through `delivery.manager`. Events come in
 * no promised order.
 *
 * `consumer` names who is told, in lower-case words with hyphens, and is part of the event's history: renamed, it is
 * another consumer. Several events may go to one consumer; its effects never run side by side within a process. What
 * throws is tried again, and in the end put among the dead letters; `unavailable` is tried until it passes.
 */
export function OnEvent<Payload extends object>(type: EventType<Payload>, options: { consumer: string }) {
  const { consumer } = options;
  if (!consumerName.test(consumer))
    throw new Error(`"${consumer}" is not a valid consumer name: use lower-case letters, digits and hyphens.`);
  const subscription: EventSubscription = { type, consumer };
  declaredConsumers.add(consumer);
  return <Method extends AnyMethod>(
    _target: object,
    _name: string,
    descriptor: TypedPropertyDescriptor<Method> & Fitting<Payload, Method>,
  ): void => {
    Reflect.defineMetadata(subscriptionKey, subscription, descriptor.value as object);
  };
}

/** Names of the consumers of all classes that this process has loaded. */
export function consumerNames(): string[] {
  return [...declaredConsumers].toSorted();
}

export function subscriptionOf(method: object): EventSubscription | undefined {
  return Reflect.getMetadata(subscriptionKey, method) as EventSubscription | undefined;
}

export function deliveryOf(
  event: { id: string; occurredAt: string | Date; requestId?: string | null; publisher?: string },
  manager: EntityManager,
): EventDelivery {
  const { id, occurredAt, requestId, publisher } = event;
  return {
    id,
    occurredAt: new Date(occurredAt),
    ...(typeof requestId === 'string' && { requestId }),
    ...(publisher !== undefined && { publisher }),
    manager,
  };
}
