import { contract, operation, type Contract } from './contract.js';
import { ListOf, Text, WholeNumber } from './fields.js';
import { Uuid } from './id-fields.js';

const position = { min: 0, max: Number.MAX_SAFE_INTEGER };

/** Which of its published events a service is asked for: those of one name, after a position and up to another. */
export class EventsAfter {
  @Text({ max: 200, description: '`teams.team_updated`' })
  event_name!: string;

  @WholeNumber({ ...position, description: 'Exclusive.' })
  after!: number;

  @WholeNumber({ ...position, optional: true, description: 'Inclusive; without it, to the last one.' })
  up_to?: number;

  @WholeNumber({
    min: 0,
    max: 3_600_000,
    description: 'Milliseconds since an event was published: younger ones may still be on their way.',
  })
  published_before_ms!: number;
}

/** An event as the outbox of its publisher has it. */
export class PublishedEvent {
  @Uuid()
  id!: string;

  @WholeNumber(position)
  position!: number;

  @WholeNumber({ ...position, description: 'The last event of the same name before this one; 0 for none.' })
  previous!: number;

  payload!: unknown;

  @Text({ max: 40, description: 'ISO 8601.' })
  occurred_at!: string;

  @Text({ max: 200, optional: true })
  request_id?: string;

  @Text({ max: 200, optional: true })
  traceparent?: string;
}

export class EventsPage {
  @ListOf(() => PublishedEvent, {
    max: 1000,
    description: 'First of the requested events, in the order of their positions.',
  })
  events!: PublishedEvent[];

  @WholeNumber({
    ...position,
    description: 'Events of this name up to this position are no longer stored. Says nothing if at or before `after`.',
  })
  forgotten_up_to!: number;

  /** Whether the publisher has no event in the whole range, published or not. */
  has_none!: boolean;
}

/** Operations that libs/events adds to each service. Only services may call them. */
export function eventLog(
  service: string,
): Contract<{ read: { input: typeof EventsAfter; output: typeof EventsPage } }> {
  return contract(`${service}.event_log`, { read: operation(EventsAfter, EventsPage) });
}
