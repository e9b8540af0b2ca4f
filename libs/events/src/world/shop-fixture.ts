import { event, WholeNumber } from '@atoll/contracts';
import { DatabaseModule, openDataSource, Transactions, type DatabaseOptions } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { createDatabaseFrom, type TestDatabase } from '@atoll/testing';
import { Inject, Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import type { Courier } from '../courier.js';
import { eventEntities } from '../event-entities.js';
import { createEventTables, dropEventTables } from '../event-tables.js';
import { EventsModule } from '../events.module.js';
import type { RetryRules } from '../inbox.js';
import type { RecoveryRules } from '../missing-of-sequence.js';
import { OnEvent, type EventDelivery } from '../on-event.js';
import { Outbox } from '../outbox.js';

/** Two services for specs: `orders` tells of orders, `mail` has two consumers that take note of them. */
export type ShopService = 'orders' | 'mail';
export const shopServices: readonly ShopService[] = ['orders', 'mail'];

class OrderPlaced {
  @WholeNumber({ min: 0, max: 1_000_000 })
  number!: number;
}
export const orderPlaced = event('orders.placed', OrderPlaced);
const orderCancelled = event('orders.cancelled', OrderPlaced);

/**
 * What a spec lets happen inside an effect, after its row is written. `freeze` stops the process, as SIGSTOP does,
 * until `World.thaw`.
 */
export type Script = (
  payload: OrderPlaced,
  consumer: string,
  delivery: EventDelivery,
  freeze: () => Promise<void>,
) => Promise<void> | void;
export type EffectHook = (payload: OrderPlaced, consumer: string, delivery: EventDelivery) => Promise<void>;

const scriptToken = Symbol('script');

class CreateOrders1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'orders');
    await runner.query('CREATE TABLE orders.placed (number integer PRIMARY KEY)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE orders.placed');
    await dropEventTables(runner, 'orders');
  }
}

class CreateMail1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'mail');
    await runner.query(
      'CREATE TABLE mail.effect (position serial, consumer text, event_id uuid, number integer, request_id text, name text)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE mail.effect');
    await dropEventTables(runner, 'mail');
  }
}

@Injectable()
export class Orders {
  constructor(
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
  ) {}

  /** Places orders and tells of each, in one transaction. It fails in the end, and is rolled back, if `fails`. */
  async place(numbers: readonly number[], options: { fails?: boolean; requestId?: string } = {}): Promise<void> {
    const { fails = false, requestId } = options;
    const context =
      requestId === undefined
        ? undefined
        : { requestId, deadlineAtMs: 0, caller: { kind: 'system', service: 'orders' } as const };
    await this.transactions.run(async (manager) => {
      for (const number of numbers) {
        await manager.query('INSERT INTO placed VALUES ($1)', [number]);
        await this.outbox.add(manager, orderPlaced, { number }, context);
      }
      if (fails) throw new Error('rolled back');
    });
  }

  async cancel(number: number): Promise<void> {
    await this.transactions.run((manager) => this.outbox.add(manager, orderCancelled, { number }));
  }
}

@Injectable()
class Effects {
  constructor(@Inject(scriptToken) private readonly script: EffectHook) {}

  @OnEvent(orderPlaced, { consumer: 'letters' })
  async writeLetter(placed: OrderPlaced, delivery: EventDelivery): Promise<void> {
    await this.note('letters', 'placed', placed, delivery);
  }

  @OnEvent(orderCancelled, { consumer: 'letters' })
  async writeApology(placed: OrderPlaced, delivery: EventDelivery): Promise<void> {
    await this.note('letters', 'cancelled', placed, delivery);
  }

  @OnEvent(orderPlaced, { consumer: 'statistics' })
  async count(placed: OrderPlaced, delivery: EventDelivery): Promise<void> {
    await this.note('statistics', 'placed', placed, delivery);
  }

  private async note(consumer: string, name: string, payload: OrderPlaced, delivery: EventDelivery): Promise<void> {
    const { id, requestId, manager } = delivery;
    const values = [consumer, id, payload.number, requestId ?? null, name];
    await manager.query(
      'INSERT INTO effect (consumer, event_id, number, request_id, name) VALUES ($1, $2, $3, $4, $5)',
      values,
    );
    // After the row, so that what fails here must take the row with it.
    await this.script(payload, consumer, delivery);
  }
}

@Module({})
class ShopModule {}

@Module({})
class RpcOfShop {}

export interface ShopOptions {
  service: ShopService;
  courier: Courier;
  databaseUrl: string;
  script: EffectHook;
  retries: RetryRules;
  recovery: RecoveryRules;
  maxSilenceMs: number;
  rpc: Pick<Rpc, 'call'>;
}

/** Nothing counts as missing: what a courier loses, it must bring back itself. */
export const noRecovery: RecoveryRules = { checkEveryMs: 3_600_000, graceMs: 3_600_000, untakenMs: 3_600_000 };
/** What never came is asked for again soon. */
export const specRecovery: RecoveryRules = { checkEveryMs: 50, graceMs: 50, untakenMs: 200 };
export const specRetries: RetryRules = {
  maxTries: 3,
  firstMs: 10,
  maxMs: 40,
  goneAfterMs: 50,
  timedOut: { firstMs: 10, maxMs: 40 },
  aloneForMs: 50,
};

function databaseOf(service: ShopService, url: string): DatabaseOptions {
  const migrations = [service === 'orders' ? CreateOrders1700000000000 : CreateMail1700000000000];
  return { schema: service, url, entities: eventEntities, migrations, poolSize: 5 };
}

const migrated = {
  name: 'shop',
  make: async (url: string) => {
    for (const service of shopServices) await (await openDataSource(databaseOf(service, url))).destroy();
  },
};

/** One for both services, with all their tables. */
export const shopDatabase = (): Promise<TestDatabase> => createDatabaseFrom(migrated);

function shopModule({ service, databaseUrl, script, rpc, ...options }: ShopOptions): DynamicModule {
  const own = service === 'orders' ? [Orders] : [Effects, { provide: scriptToken, useValue: script }];
  return {
    module: ShopModule,
    imports: [
      DatabaseModule.forRoot(databaseOf(service, databaseUrl)),
      { module: RpcOfShop, global: true, providers: [{ provide: Rpc, useValue: rpc }], exports: [Rpc] },
      EventsModule.forRoot({ service, ...options }),
    ],
    providers: own,
  };
}

export async function startShop(options: ShopOptions): Promise<INestApplicationContext> {
  return NestFactory.createApplicationContext(shopModule(options), { abortOnError: false });
}
