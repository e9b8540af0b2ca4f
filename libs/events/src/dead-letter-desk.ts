import { requirePlatformAdmin, type CallContext, type Nothing } from '@atoll/contracts';
import {
  deadLetters,
  payloadExcerptLimit,
  type DeadLetterPath,
  type DeadLettersAfter,
  type DeadLettersOfService,
  type FailedEvent,
} from '@atoll/contracts/operator';
import { afterCommit, instantJson, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller, Injectable, Logger, type Type } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DeadLetter } from './dead-letter.entity.js';
import { requestRetry } from './dead-letter-list.js';
import { DeadLetters } from './dead-letters.js';

const defaultLimit = 20;
const errorExcerpt = 4_000;

type Row = Omit<FailedEvent, 'service'>;

/** Microseconds since 1970, as the cursor has them. */
const place = `(extract(epoch FROM last_failed_at) * 1000000)::bigint`;

const columns = `id AS dead_letter_id, consumer, event_id, event_name, left(payload::text, ${payloadExcerptLimit}) AS payload, request_id,
  left(last_error, ${errorExcerpt}) AS error, tries, ${instantJson('occurred_at')} AS occurred_at, ${instantJson('first_failed_at')} AS first_failed_at,
  ${instantJson('last_failed_at')} AS last_failed_at, ${instantJson('retry_requested_at')} AS replay_requested_at, ${place} || '_' || id AS cursor`;

/** The dead letters of this service, for the operator. */
@Injectable()
export class DeadLetterDesk {
  private readonly logger = new Logger('DeadLetters');

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly deadLetters: DeadLetters,
  ) {}

  /** The latest failure first. */
  async list(service: string, { cursor, limit = defaultLimit }: DeadLettersAfter): Promise<DeadLettersOfService> {
    const [micros = null, id = null] = cursor?.split('_') ?? [];
    const rows = await this.dataSource.query<Row[]>(
      `SELECT ${columns} FROM dead_letter
       WHERE $1::bigint IS NULL OR (dead_letter.last_failed_at, id) < (timestamptz '1970-01-01 00:00:00Z' + $1::bigint * interval '1 microsecond', $2::uuid)
       ORDER BY dead_letter.last_failed_at DESC, id DESC LIMIT $3`,
      [micros, id, limit + 1],
    );
    const data = rows.slice(0, limit).map((row) => failedEvent(service, row));
    return { data, next_cursor: rows.length > limit ? (data.at(-1)?.cursor ?? null) : null };
  }

  /** Has it tried once more, as `npm run dead-letters -- retry` does. Throws AppError `not_found`. */
  async replay({ service, dead_letter_id: id }: DeadLetterPath, context: CallContext): Promise<FailedEvent> {
    return this.transactions.once(context, async (manager) => {
      if (!(await requestRetry(manager, id))) throw unknown();
      afterCommit(manager, this.deadLetters.retryAsked.ring);
      const row = await this.read(manager, id);
      this.logger.log({
        message: `A replay of the dead letter ${id} was requested`,
        event: row.event_name,
        request_id: context.requestId,
      });
      return failedEvent(service, row);
    });
  }

  /** Deletes it: its event never has this effect. Waits for a try that runs. Throws AppError `not_found`. */
  async drop({ dead_letter_id: id }: DeadLetterPath, { requestId }: CallContext): Promise<Nothing> {
    await this.transactions.run(async (manager) => {
      const letter = await manager.findOne(DeadLetter, { where: { id }, lock: { mode: 'pessimistic_write' } });
      if (!letter) throw unknown();
      await manager.delete(DeadLetter, { id });
      const { eventName, eventId, consumer } = letter;
      this.logger.warn({
        message: `The dead letter ${id} was dropped; ${consumer} never handles this event`,
        event: eventName,
        event_id: eventId,
        request_id: requestId,
      });
    });
    return {};
  }

  private async read(manager: EntityManager, id: string): Promise<Row> {
    const [row] = await manager.query<Row[]>(`SELECT ${columns} FROM dead_letter WHERE id = $1`, [id]);
    if (!row) throw unknown();
    return row;
  }
}

function failedEvent(service: string, row: Row): FailedEvent {
  return { ...row, service: service as FailedEvent['service'] };
}

function unknown(): AppError {
  return new AppError('not_found', 'No such dead letter.');
}

/** The operations by which the operator sees and settles them. */
export function deadLettersController(service: string): Type {
  const operations = deadLetters(service);

  @Controller()
  class DeadLettersController implements Handlers<typeof operations> {
    constructor(private readonly desk: DeadLetterDesk) {}

    @Handle(operations.list)
    async list(asked: DeadLettersAfter, { caller }: CallContext): Promise<DeadLettersOfService> {
      requirePlatformAdmin(caller);
      return this.desk.list(service, asked);
    }

    @Handle(operations.replay)
    async replay(path: DeadLetterPath, context: CallContext): Promise<FailedEvent> {
      requirePlatformAdmin(context.caller);
      return this.desk.replay(path, context);
    }

    @Handle(operations.drop)
    async drop(path: DeadLetterPath, context: CallContext): Promise<Nothing> {
      requirePlatformAdmin(context.caller);
      return this.desk.drop(path, context);
    }
  }
  return DeadLettersController;
}
