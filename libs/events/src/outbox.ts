import type { CallContext, EventType } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { writePayload } from './event-payload.js';

/** What NOTIFY and LISTEN meet on; the schema makes it the service's own. */
export const outboxChannel = `'outbox.' || current_schema()`;

/** Where a service says what happened, in the same transaction in which it happens. */
@Injectable()
export class Outbox {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Records an event in the transaction of `manager`: it is delivered if and only if that commits, a few milliseconds later.
   * The request id and trace of `context` go with it. Throws an Error outside of a transaction, and `InvalidPayload` for a payload
   * that its class would refuse, that has fields the class does not know, or that is larger than 960 KiB.
   */
  async add<Payload extends object>(
    manager: EntityManager,
    type: EventType<Payload>,
    payload: Payload,
    context?: CallContext,
  ): Promise<void> {
    if (!manager.queryRunner?.isTransactionActive) throw new Error('An event is added in the transaction of what it tells of.');
    await manager.query(
      `WITH added AS (
         INSERT INTO outbox (id, event_name, payload, request_id, traceparent) VALUES ($1, $2, $3, $4, $5)
       )
       SELECT pg_notify(${outboxChannel}, '')`,
      [newId(), type.name, writePayload(type.payload, payload), context?.requestId ?? null, context?.traceparent ?? null],
    );
  }

  /** Events that wait for the relay now. */
  async pending(): Promise<number> {
    const [row] = await this.dataSource.query<{ pending: number }[]>('SELECT count(*)::int AS pending FROM outbox');
    return row?.pending ?? 0;
  }
}
