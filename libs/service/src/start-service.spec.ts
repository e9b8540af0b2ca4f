import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Injectable, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { contract, operation, Text, type CallContext } from '@atoll/contracts';
import { createIdempotencyTable, DatabaseModule, dropIdempotencyTable } from '@atoll/database';
import { createEventTables, dropEventTables, eventEntities, EventsModule } from '@atoll/events';
import { Handle, Rpc, systemContext, type Handlers } from '@atoll/rpc';
import { createDatabase, startNats, type NatsServer } from '@atoll/testing';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { failuresOf } from './health.js';
import { createLogger } from './logger.js';
import { startService, type RunningService } from './start-service.js';
import { inProcessTransport, natsTransport, type Transport } from './transport.js';

class Greeting {
  @Text({ max: 100 })
  text!: string;
}

const greeter = contract('greeter', { greet: operation(Greeting, Greeting) });
let release: () => void = () => undefined;
let closed = false;

@Injectable()
class Closing implements OnApplicationShutdown {
  onApplicationShutdown(): void {
    closed = true;
  }
}

@Controller()
class GreeterController implements Handlers<typeof greeter> {
  constructor(private readonly dataSource: DataSource) {}

  @Handle(greeter.greet)
  async greet({ text }: Greeting, _context: CallContext): Promise<Greeting> {
    if (text === 'connections') return { text: String(await this.connections()) };
    if (text === 'wait') await new Promise<void>((resolve) => (release = resolve));
    return { text: `Hello ${text}` };
  }

  private async connections(): Promise<number> {
    const count = `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'atoll-greeter'`;
    return (await this.dataSource.query<{ count: number }[]>(count))[0]?.count ?? 0;
  }
}

@Module({ controllers: [GreeterController], providers: [Closing] })
class GreeterModule {}

class Tables1790000000000 implements MigrationInterface {
  readonly name = 'Tables1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'greeter');
    await createEventTables(runner, 'greeter');
  }
  async down(runner: QueryRunner): Promise<void> {
    await dropEventTables(runner, 'greeter');
    await dropIdempotencyTable(runner, 'greeter');
  }
}

const logger = createLogger({ service: 'greeter', level: 'silent' });
let database: Awaited<ReturnType<typeof createDatabase>>;
let nats: NatsServer | undefined;

function greeterModule({ rpc, courier }: Transport): DynamicModule {
  return {
    module: GreeterModule,
    imports: [
      rpc,
      DatabaseModule.forRoot({
        schema: 'greeter',
        url: database.url,
        entities: eventEntities,
        migrations: [Tables1790000000000],
      }),
      EventsModule.forRoot({ service: 'greeter', courier }),
    ],
  };
}

const transports: { name: string; open: () => Promise<Transport> }[] = [
  { name: 'in one process', open: () => Promise.resolve(inProcessTransport(['greeter'])) },
  {
    name: 'over NATS',
    open: async () => {
      nats = await startNats();
      return natsTransport({ servers: nats.url, name: 'greeter', secrets: 'a secret of sixteen' });
    },
  },
];

describe.each(transports)('a service $name', ({ open }) => {
  let transport: Transport;
  let service: RunningService;

  beforeEach(async () => {
    closed = false;
    database = await createDatabase();
    transport = await open();
    service = await startService({ name: 'greeter', module: greeterModule(transport), transport, logger });
  });
  afterEach(async () => {
    await service.stop();
    await transport.close();
    await nats?.stop();
    nats = undefined;
    await database.drop();
  });

  async function withRpc(use: (rpc: Rpc) => Promise<void>): Promise<void> {
    const client = await NestFactory.createApplicationContext(transport.rpc, { abortOnError: false });
    await use(client.get(Rpc));
    await client.close();
  }

  async function untilReady(): Promise<void> {
    while ((await failuresOf([...transport.checks, ...service.checks])).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
  }

  it('answers, and becomes ready', () =>
    withRpc(async (rpc) => {
      expect(await rpc.call(greeter.greet, { text: 'Ada' }, systemContext('spec'))).toEqual({ text: 'Hello Ada' });
      await untilReady();
    }));

  it('has the connections of its pool open when it takes its first request', () =>
    withRpc(async (rpc) => {
      await service.stop();
      const starting = startService({ name: 'greeter', module: greeterModule(transport), transport, logger });
      let first: Greeting | undefined;
      while (!first) {
        first = await rpc.call(greeter.greet, { text: 'connections' }, systemContext('spec')).catch(() => undefined);
        await new Promise((resolve) => setImmediate(resolve));
      }
      service = await starting;
      expect(Number(first.text)).toBeGreaterThanOrEqual(10);
    }));

  it('answers what is in flight before it stops, and is not ready meanwhile', () =>
    withRpc(async (rpc) => {
      await untilReady();
      release = () => undefined;
      const asked = rpc.call(greeter.greet, { text: 'wait' }, systemContext('spec', { deadlineMs: 60_000 }));
      const idle = release;
      while (release === idle) await new Promise((resolve) => setTimeout(resolve, 5));
      const stopped = service.stop();
      const reasons = await failuresOf(service.checks);
      expect(reasons).toContainEqual({ name: 'greeter requests', reason: 'draining' });
      expect(closed).toBe(false);
      release();
      expect(await asked).toEqual({ text: 'Hello wait' });
      await stopped;
      expect(closed).toBe(true);
    }));
});
