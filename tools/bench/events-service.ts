import { event, WholeNumber } from '@atoll/contracts';
import { createCallNonceTable, createIdempotencyTable, DatabaseModule, newId, Transactions } from '@atoll/database';
import {
  createEventTables,
  eventEntities,
  EventsModule,
  OnEvent,
  Outbox,
  type Courier,
  type EventDelivery,
} from '@atoll/events';
import { Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { MigrationInterface, QueryRunner } from 'typeorm';

class NoteWritten {
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER })
  number!: number;
}
const noteWritten = event('notes.written', NoteWritten);

const benchServices = ['notes', 'reader'] as const;
export type BenchService = (typeof benchServices)[number];

/** Takes every event and delivers it to nobody: what remains is the work of the database. */
export const carriesNothing: Courier = {
  join(_service, _consumers, onReady) {
    queueMicrotask(onReady);
    return {
      publish: () => Promise.resolve('done'),
      status: () => ({ ready: true }),
      stopDelivering: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
  },
};

/** Enough that writers rarely meet at one. */
const books = 10_000;

class Notes1790000000000 implements MigrationInterface {
  readonly name = 'Notes1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'notes');
    await createCallNonceTable(runner, 'notes');
    await createEventTables(runner, 'notes');
    await runner.query('CREATE TABLE notes.outbox_floor (LIKE notes.outbox INCLUDING ALL)');
    await runner.query('CREATE TABLE notes.book (id integer PRIMARY KEY, revision integer NOT NULL DEFAULT 0)');
    await runner.query(`INSERT INTO notes.book (id) SELECT generate_series(1, ${books})`);
    await runner.query(`CREATE TABLE notes.note (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, book_id integer NOT NULL, revision integer NOT NULL, text text NOT NULL
    )`);
  }
  async down(): Promise<void> {}
}

class Reader1790000000000 implements MigrationInterface {
  readonly name = 'Reader1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'reader');
    await createCallNonceTable(runner, 'reader');
    await createEventTables(runner, 'reader');
    await runner.query(
      'CREATE TABLE reader.note_read (number bigint PRIMARY KEY, read_at timestamptz NOT NULL DEFAULT clock_timestamp())',
    );
  }
  async down(): Promise<void> {}
}

export interface Writing {
  /** Rows inserted beside the change of the object; each is a statement. */
  rows: number;
  /** `row`: the event's row goes into a table of the same form, from which nobody relays. */
  event: 'event' | 'row' | 'none';
}

/** Changes an object under its row lock and inserts rows and an event, in one transaction. */
@Injectable()
export class Notes {
  constructor(
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
  ) {}

  /** Number of events that are not relayed yet. */
  pending(): Promise<number> {
    return this.outbox.pending();
  }

  /** Returns the number of the last row. */
  async write({ rows, event: kind }: Writing): Promise<number> {
    return this.transactions.run(async (manager) => {
      const bookId = 1 + Math.floor(Math.random() * books);
      const [book] = await manager.query<{ revision: number }[]>(
        'SELECT revision FROM book WHERE id = $1 FOR NO KEY UPDATE',
        [bookId],
      );
      const revision = (book?.revision ?? 0) + 1;
      await manager.query('UPDATE book SET revision = $2 WHERE id = $1', [bookId, revision]);
      let number = 0;
      for (let row = 0; row < rows; row += 1) {
        const [inserted] = await manager.query<{ number: string }[]>(
          'INSERT INTO note (book_id, revision, text) VALUES ($1, $2, $3) RETURNING number',
          [bookId, revision, 'a note of the bench'],
        );
        number = Number(inserted?.number);
      }
      if (kind === 'event') await this.outbox.add(manager, noteWritten, { number });
      if (kind === 'row') {
        await manager.query('INSERT INTO outbox_floor (id, event_name, payload) VALUES ($1, $2, $3)', [
          newId(),
          noteWritten.name,
          JSON.stringify({ number }),
        ]);
      }
      return number;
    });
  }
}

/** Records when the effect of an event was committed. */
@Injectable()
class Reader {
  @OnEvent(noteWritten, { consumer: 'reading' })
  async read({ number }: NoteWritten, { manager }: EventDelivery): Promise<void> {
    await manager.query('INSERT INTO note_read (number) VALUES ($1)', [number]);
  }
}

@Module({})
class BenchModule {}

function benchModule(service: BenchService, courier: Courier, databaseUrl: string, poolSize: number): DynamicModule {
  return {
    module: BenchModule,
    imports: [
      DatabaseModule.forRoot({
        schema: service,
        url: databaseUrl,
        entities: eventEntities,
        migrations: [service === 'notes' ? Notes1790000000000 : Reader1790000000000],
        poolSize,
      }),
      EventsModule.forRoot({ service, courier }),
    ],
    providers: service === 'notes' ? [Notes] : [Reader],
  };
}

/** Starts one service of the bench on a connection pool of `poolSize`. */
export async function startBenchService(
  service: BenchService,
  courier: Courier,
  databaseUrl: string,
  poolSize = 10,
): Promise<INestApplicationContext> {
  const module = benchModule(service, courier, databaseUrl, poolSize);
  return NestFactory.createApplicationContext(module, { logger: ['error', 'warn'], abortOnError: false });
}
