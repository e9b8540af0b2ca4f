import {
  eventLog,
  requireService,
  type CallContext,
  type EventsAfter,
  type EventsPage,
  type PublishedEvent,
} from '@atoll/contracts';
import { instantJson } from '@atoll/database';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller, Injectable, type Type } from '@nestjs/common';
import { DataSource } from 'typeorm';

const pageRows = 200;
/** Of payloads on one page, unless the first is larger. */
const pageBytes = 1024 * 1024;

interface Row extends Omit<PublishedEvent, 'request_id' | 'traceparent'> {
  request_id: string | null;
  traceparent: string | null;
}

/** Events that this service published in the last days, for consumers that missed some. */
@Injectable()
export class PublishedEvents {
  constructor(private readonly dataSource: DataSource) {}

  async read(asked: EventsAfter): Promise<EventsPage> {
    const { event_name, after, up_to = Number.MAX_SAFE_INTEGER, published_before_ms } = asked;
    const range = [event_name, after, up_to];
    // Sorted by the column and not by the number that is returned under its name: only the former is in an index, so
    // that a page reads no more rows than it has.
    const rows = await this.dataSource.query<Row[]>(
      `SELECT id, position::float8 AS position, previous::float8 AS previous, payload, request_id, traceparent,
              ${instantJson('occurred_at')} AS occurred_at
       FROM (
         SELECT *, sum(octet_length(payload::text)) OVER so_far AS bytes, row_number() OVER so_far AS number
         FROM outbox_published
         WHERE event_name = $1 AND position > $2 AND position <= $3 AND published_at <= now() - $4 * interval '1 millisecond'
         WINDOW so_far AS (ORDER BY position) ORDER BY position LIMIT $5
       ) first
       WHERE number = 1 OR bytes <= $6 ORDER BY first.position`,
      [...range, published_before_ms, pageRows, pageBytes],
    );
    const events = rows.map(toEvent);
    const [state] = await this.dataSource.query<{ forgotten_up_to: number; has_none: boolean }[]>(stateOf, range);
    return { events, forgotten_up_to: state?.forgotten_up_to ?? 0, has_none: state?.has_none ?? false };
  }
}

const firstOf = (table: string): string =>
  `(SELECT position, previous FROM ${table} WHERE event_name = $1 AND position IS NOT NULL ORDER BY position LIMIT 1)`;
const inRange = 'event_name = $1 AND position > $2 AND position <= $3';
/**
 * Asked for the first, which makes PostgreSQL use the index. For EXISTS it may read the table instead, since it takes
 * matches to be spread over it; those of a range are all in one place, behind everything that was published before.
 */
const someArePublished = `(SELECT position FROM outbox_published WHERE ${inRange} ORDER BY position LIMIT 1) IS NOT NULL`;

/**
 * SQL: what is forgotten, and whether there is nothing from $2 to $3. Each part reads one entry of an index, but for
 * those of the outbox: it has none of the kind, and may hold very many events. So the other parts come first, and often
 * say enough: up to $2 it is all the same what is kept.
 */
const stateOf = `
  SELECT COALESCE((SELECT position FROM event_head WHERE event_name = $1 AND position <= $2),
                  (SELECT previous FROM ${firstOf('outbox_published')} first WHERE previous <= $2),
                  (SELECT previous FROM (${firstOf('outbox_published')} UNION ALL ${firstOf('outbox')}) kept ORDER BY position LIMIT 1),
                  (SELECT position FROM event_head WHERE event_name = $1), 0)::float8 AS forgotten_up_to,
         NOT (EXISTS (SELECT FROM event_head WHERE event_name = $1 AND position > $2)
              AND (${someArePublished} OR EXISTS (SELECT FROM outbox WHERE ${inRange}))) AS has_none`;

function toEvent({ request_id, traceparent, ...event }: Row): PublishedEvent {
  return { ...event, ...(request_id !== null && { request_id }), ...(traceparent !== null && { traceparent }) };
}

/** The operation by which other services read them. */
export function publishedEventsController(service: string): Type {
  const log = eventLog(service);

  @Controller()
  class PublishedEventsController implements Handlers<typeof log> {
    constructor(private readonly events: PublishedEvents) {}

    @Handle(log.read)
    async read(asked: EventsAfter, { caller }: CallContext): Promise<EventsPage> {
      requireService(caller);
      return this.events.read(asked);
    }
  }
  return PublishedEventsController;
}
