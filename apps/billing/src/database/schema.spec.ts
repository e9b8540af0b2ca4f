import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrationDrift } from '@atoll/database';
import { DataSource } from 'typeorm';
import { BillingFixture } from '../billing-fixture.js';

describe('the schema of the billing service', () => {
  let fixture: BillingFixture;
  beforeAll(async () => {
    fixture = await BillingFixture.start();
  });
  afterAll(() => fixture.stop());

  it('is what the entities say', async () => {
    expect(await migrationDrift(fixture.app.get(DataSource, { strict: false }))).toEqual([]);
  });

  it('leaves nothing behind when it is taken back', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    for (let left = dataSource.migrations.length; left > 0; left -= 1) await dataSource.undoLastMigration();
    const tables = await fixture.query(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'billing' AND tablename <> 'migration'`,
    );
    await dataSource.runMigrations();
    expect(tables).toEqual([]);
  });
});
