import type { CallContext, EventType } from '@atoll/contracts';
import { afterCommit, newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { CommitSignal } from './commit-signal.js';
import { writePayload } from './event-payload.js';

/** Records what happened in a service, in the transaction in which it happens. */
@Injectable()
export class Outbox {
  constructor(
    private readonly dataSource: DataSource,
    private readonly signal: CommitSignal,
  ) {}

  /**
   * Records an event in the transaction of `manager`: it is delivered if and only if that commits, a few milliseconds
   * later. The request id and trace of `context` go with it. Add an event after the row lock of the object that it is
   * about. Throws an Error outside a transaction, and `InvalidPayload` for a payload that its class rejects, that has
   * unknown fields, or that is larger than 960 KiB.
   */
  async add<Payload extends object>(
    manager: EntityManager,
    type: EventType<Payload>,
    payload: Payload,
    context?: CallContext,
  ): Promise<void> {
    await this.addAll(manager, type, [payload], context);
  }

  /** As `add`, of several events in their order, in one statement. */
  async addAll<Payload extends object>(
    manager: EntityManager,
    type: EventType<Payload>,
    payloads: readonly Payload[],
    context?: CallContext,
  ): Promise<void> {
    if (!manager.queryRunner?.isTransactionActive) throw new Error('Outbox.add must run inside a transaction.');
    if (payloads.length === 0) return;
    await manager.query(
      `INSERT INTO outbox (id, event_name, payload, request_id, traceparent)
       SELECT id, $1, payload, $2, $3 FROM unnest($4::uuid[], $5::jsonb[]) WITH ORDINALITY event (id, payload, place) ORDER BY place`,
      [
        type.name,
        context?.requestId ?? null,
        context?.traceparent ?? null,
        payloads.map(() => newId()),
        payloads.map((payload) => writePayload(type.payload, payload)),
      ],
    );
    // Not NOTIFY: PostgreSQL serialises the commits of all transactions that notify, in all databases of the server.
    afterCommit(manager, this.signal.emit);
  }

  /** Number of events that wait for the relay. */
  async pending(): Promise<number> {
    const [row] = await this.dataSource.query<{ pending: number }[]>('SELECT count(*)::int AS pending FROM outbox');
    return row?.pending ?? 0;
  }
}
