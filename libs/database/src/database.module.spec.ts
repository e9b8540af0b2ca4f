import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import type { Repository } from 'typeorm';
import { Account, bankOptions } from './account-fixture.js';
import { DatabaseModule } from './database.module.js';
import { DatabaseStatus } from './database-status.js';
import { Statements } from './statements.js';
import { Transactions } from './transactions.js';

let database: TestDatabase;
const apps: INestApplicationContext[] = [];

beforeEach(async () => {
  database = await createDatabase();
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
  await database.drop();
});

@Injectable()
class Ledger {
  constructor(
    @InjectRepository(Account) readonly accounts: Repository<Account>,
    readonly transactions: Transactions,
    readonly statements: Statements,
    readonly status: DatabaseStatus,
  ) {}
}

/** As each service of a process does: an application, and a container, of its own. */
async function start(schema: string): Promise<Ledger> {
  const { url } = database;
  const options = schema === 'bank' ? bankOptions(url) : { schema, url, entities: [Account], migrations: [] };
  @Module({ imports: [DatabaseModule.forRoot(options), TypeOrmModule.forFeature([Account])], providers: [Ledger] })
  class BankModule {}
  const app = await NestFactory.createApplicationContext(BankModule, { abortOnError: false });
  apps.push(app);
  return app.get(Ledger);
}

describe('DatabaseModule', () => {
  it('gives a service its migrated tables, by repository, transaction and statement', async () => {
    const { accounts, transactions, statements, status } = await start('bank');
    await transactions.run((manager) => manager.insert(Account, { name: 'ada', balanceInCents: 3 }));
    expect(await accounts.findOneBy({ name: 'ada' })).toMatchObject({ balanceInCents: 3 });
    expect(await statements.query('SELECT balance_in_cents FROM account WHERE name = $1', ['ada'])).toEqual([
      { balance_in_cents: 3 },
    ]);
    // A machine that is busy may take longer than the second in which it answers.
    while (await status.fault());
  });

  it('serves several services of one process, each in its own schema', async () => {
    const [bank, other] = await Promise.all([start('bank'), start('other')]);
    await bank.transactions.run((manager) => manager.insert(Account, { name: 'ada', balanceInCents: 3 }));
    await expect(other.accounts.find()).rejects.toThrow('relation "other.account" does not exist');
    expect(await bank.accounts.count()).toBe(1);
  });

  it('closes every connection when the service stops', async () => {
    const { status, statements } = await start('bank');
    while (await status.fault());
    const left = `SELECT count(*)::int AS left FROM pg_stat_activity 
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
    expect(await statements.query(left, [])).not.toEqual([{ left: 0 }]);
    for (const app of apps.splice(0)) await app.close();
    const other = await start('other');
    // PostgreSQL takes a moment to end what nobody is connected to any more.
    while (!isDeepStrictEqual(await other.statements.query(left, []), [{ left: 0 }])) await delay(10);
  });
});
