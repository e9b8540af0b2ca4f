/** An event on its way: what a row of the outbox says, JSON only. */
export interface DomainEvent {
  /** Id of the outbox row: one id is one fact, however often it is delivered. */
  readonly id: string;
  /** `teams.team_changed` */
  readonly name: string;
  readonly payload: unknown;
  /** ISO 8601. */
  readonly occurredAt: string;
  readonly requestId?: string;
  readonly traceparent?: string;
  /**
   * The service that published it, proven where it came over the network; undefined for an event of a release that did
   * not sign.
   */
  readonly publisher?: string;
  /** Among all events of its publisher, from 1, without gaps; undefined for an event of a release without positions. */
  readonly position?: number;
  /** The position of the publisher's last event of the same name before this one; 0 for none. Given with `position`. */
  readonly previous?: number;
}

/** To be tried again, not before the delay is over. `reason` holds no secret. */
export interface TryAgain {
  readonly retryAfterMs: number;
  readonly reason: string;
}

/** `done`: nothing is left to do for this event. */
export type Outcome = 'done' | TryAgain;

/** The subscriptions of a service under one consumer name. Its effects run one after the other within a process. */
export interface EventConsumer {
  readonly name: string;
  /** Names of the events it takes; the courier hands it no others. */
  readonly eventNames: readonly string[];
  /**
   * Takes one delivery. `attempt` counts from 1 and is greater than 1 whenever an earlier delivery may have been begun.
   * Never throws, and may be told the same event any number of times, in any order.
   */
  take(event: DomainEvent, attempt: number): Promise<Outcome>;
}

/**
 * Brings events from the outbox of one service to the consumers of all. At least once; order is kept where nothing
 * fails, and nothing may depend on it.
 */
export interface Courier {
  /**
   * Joins a service: from now on its consumers are handed what is published. Returns at once, also when the courier
   * cannot work yet. `onReady` is called each time that it can (again). Without a `cut` nothing unsigned is taken.
   */
  join(service: string, consumers: readonly EventConsumer[], onReady: () => void, cut?: UnsignedCut): CourierLink;
}

/** A stream of the broker as a service found it. */
export interface StreamState {
  /** Creation time as the broker writes it: it differs after the stream was recreated. */
  readonly created: string;
  readonly lastSequence: number;
}

/**
 * Until where a service takes events without a signature: those that were in the stream when it first ran a release
 * that checks them.
 */
export interface UnsignedCut {
  /** The last sequence in this stream that may be unsigned; 0 for none. */
  upTo(stream: StreamState): Promise<number>;
}

/** How full the broker's stream is. */
export interface StreamUsage {
  readonly bytes: number;
  /** The limit at which it takes no more. */
  readonly maxBytes: number;
}

/** One service's end of the courier. */
export interface CourierLink {
  /**
   * Takes charge of one event. `done` means that the outbox may forget it. Throws `CourierAway` when nothing can be
   * published at present; what concerns this event alone is a `TryAgain`.
   */
  publish(event: DomainEvent, attempt: number): Promise<Outcome>;
  status(): { ready: boolean; reason?: string };
  /** How full the broker's stream is; undefined if there is none, or if it has not been checked yet. */
  readonly streamUsage?: StreamUsage | undefined;
  /** Hands out no more deliveries and finishes those in hand. Publishing goes on. */
  stopDelivering(): Promise<void>;
  /** Ends what is left of the link. */
  close(): Promise<void>;
}

/** The courier as a whole is out of order: a reason to wait, and no fault of any event. */
export class CourierAway extends Error {
  override readonly name = 'CourierAway';
}
