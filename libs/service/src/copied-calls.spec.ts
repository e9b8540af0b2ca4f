import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { contract, operation, Text } from '@atoll/contracts';
import {
  createCallNonceTable,
  createIdempotencyTable,
  DatabaseModule,
  dropCallNonceTable,
  dropIdempotencyTable,
  Transactions,
} from '@atoll/database';
import { AppError } from '@atoll/errors';
import { createEventTables, dropEventTables, eventEntities, EventsModule } from '@atoll/events';
import { Handle, NatsLink, Rpc, systemContext, type Handlers } from '@atoll/rpc';
import { createDatabase, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DataSource, type EntityManager, type MigrationInterface, type QueryRunner } from 'typeorm';
import { createLogger } from './logger.js';
import { startService, type RunningService } from './start-service.js';
import { natsTransport, type Transport } from './transport.js';

class Entry {
  @Text({ max: 100 })
  text!: string;
}

type Request = Parameters<Parameters<NatsLink['subscribe']>[2]>[0];

const ledger = contract('ledger', { add: operation(Entry, Entry), read: operation(Entry, Entry) });

@Controller()
class LedgerController implements Handlers<typeof ledger> {
  /** Calls that reached a handler of any replica, and what they do. */
  static begun = 0;
  static handle: (transactions: Transactions, text: string) => Promise<unknown>;

  constructor(private readonly transactions: Transactions) {}

  @Handle(ledger.add)
  async add({ text }: Entry): Promise<Entry> {
    LedgerController.begun += 1;
    await LedgerController.handle(this.transactions, text);
    return { text };
  }

  @Handle(ledger.read)
  read({ text }: Entry): Promise<Entry> {
    LedgerController.begun += 1;
    return Promise.resolve({ text });
  }
}

@Module({ controllers: [LedgerController] })
class LedgerModule {}

class Tables1790000000000 implements MigrationInterface {
  readonly name = 'Tables1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'ledger');
    await createCallNonceTable(runner, 'ledger');
    await createEventTables(runner, 'ledger');
    await runner.query('CREATE TABLE entry (text text NOT NULL)');
  }
  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE entry');
    await dropEventTables(runner, 'ledger');
    await dropCallNonceTable(runner, 'ledger');
    await dropIdempotencyTable(runner, 'ledger');
  }
}

const secrets = 'a secret of sixteen';
const logger = createLogger({ service: 'ledger', level: 'silent' });
const insert = (manager: EntityManager, text: string) => manager.query('INSERT INTO entry (text) VALUES ($1)', [text]);

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('a call that somebody copies, on a service of two replicas', () => {
  let database: TestDatabase;
  let nats: NatsServer;
  let transports: Transport[];
  let replicas: RunningService[];
  let network: NatsLink;
  let warned: string[];
  /** Messages in inboxes of the caller. */
  let answers: number;

  beforeEach(async () => {
    LedgerController.begun = 0;
    LedgerController.handle = (transactions, text) => transactions.run((manager) => insert(manager, text));
    [database, nats] = [await createDatabase(), await startNats()];
    transports = ['ledger', 'ledger', 'caller'].map((name) => natsTransport({ servers: nats.url, name, secrets }));
    replicas = [];
    for (const transport of transports.slice(0, 2)) {
      const { rpc, courier } = transport;
      const schema = {
        schema: 'ledger',
        url: database.url,
        entities: eventEntities,
        migrations: [Tables1790000000000],
      };
      const imports = [rpc, DatabaseModule.forRoot(schema), EventsModule.forRoot({ service: 'ledger', courier })];
      replicas.push(
        await startService({ name: 'ledger', module: { module: LedgerModule, imports }, transport, logger }),
      );
    }
    network = NatsLink.open({ servers: nats.url });
    await network.connected();
    answers = 0;
    network.subscribe('_INBOX.caller.>', undefined, () => (answers += 1));
    warned = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void warned.push(JSON.stringify(line)));
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    for (const replica of replicas) await replica.stop();
    for (const transport of transports) await transport.close();
    await network.close();
    await nats.stop();
    await database.drop();
  });

  /**
   * Sends copies of a request until a second handler has begun: the replica that has handled the request refuses it.
   */
  async function copy({ subject, data, reply = '', headers }: Request): Promise<void> {
    const connection = await network.connected();
    for (; LedgerController.begun < 2; await connection.flush())
      connection.publish(subject, data, { reply, headers: headers! });
  }
  /** Keeps the requests from now on, and calls back with each. */
  async function tap(onRequest: (request: Request) => void = () => undefined): Promise<Request[]> {
    const requests: Request[] = [];
    network.subscribe('ledger.>', undefined, (request) => {
      requests.push(request);
      if (requests.length === 1) onRequest(request);
    });
    await network.flush();
    return requests;
  }
  const copyAtOnce = () => tap((request) => void copy(request));
  async function call(operation: typeof ledger.add, text: string): Promise<unknown> {
    const client = await NestFactory.createApplicationContext(transports[2]!.rpc, { abortOnError: false });
    try {
      return await client.get(Rpc).call(operation, { text }, systemContext('spec', { deadlineMs: 60_000 }));
    } catch (error) {
      return error;
    } finally {
      await client.close();
    }
  }
  async function entries(): Promise<string[]> {
    const rows = await replicas[0]!.app
      .get(DataSource, { strict: false })
      .query<{ text: string }[]>('SELECT text FROM entry ORDER BY text');
    return rows.map(({ text }) => text);
  }
  const copiesDropped = () => warned.filter((line) => line.includes('another replica handled the original')).length;

  it('has its effect once, and one answer, though both begin before either has done anything', async () => {
    await copyAtOnce();
    LedgerController.handle = async (transactions, text) => {
      await until(() => LedgerController.begun === 2);
      await transactions.run((manager) => insert(manager, text));
    };
    expect(await call(ledger.add, 'raced')).toEqual({ text: 'raced' });
    await until(() => copiesDropped() === 1);
    expect([await entries(), answers]).toEqual([['raced'], 1]);
  });

  it('has its effect once, though it is copied after its answer', async () => {
    const requests = await tap();
    expect(await call(ledger.add, 'once')).toEqual({ text: 'once' });
    await copy(requests[0]!);
    await until(() => copiesDropped() === 1);
    expect([await entries(), answers]).toEqual([['once'], 1]);
  });

  it('has the effects of one handling, though that takes several transactions, of which some are retried', async () => {
    await copyAtOnce();
    LedgerController.handle = async (transactions, text) => {
      await until(() => LedgerController.begun === 2);
      for (const step of [1, 2, 3]) {
        let attempts = 0;
        await transactions.run(async (manager) => {
          await insert(manager, `${text} ${step}`);
          attempts += 1;
          if (attempts < 3) await manager.query(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`);
        });
      }
    };
    expect(await call(ledger.add, 'step')).toEqual({ text: 'step' });
    await until(() => copiesDropped() === 1);
    expect([await entries(), answers]).toEqual([['step 1', 'step 2', 'step 3'], 1]);
  });

  it('changes nothing where it fails, on either replica', async () => {
    await copyAtOnce();
    LedgerController.handle = (transactions, text) =>
      transactions.run(async (manager) => {
        await insert(manager, text);
        throw new AppError('conflict', 'No.');
      });
    expect(await call(ledger.add, 'refused')).toMatchObject({ code: 'conflict' });
    await until(() => LedgerController.begun === 2);
    expect(await entries()).toEqual([]);
  });

  it('is read twice where it only reads, and the first answer holds', async () => {
    await copyAtOnce();
    expect(await call(ledger.read, 'read')).toEqual({ text: 'read' });
    await until(() => LedgerController.begun === 2);
    expect(copiesDropped()).toBe(0);
  });
});
