import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrationDrift } from '@atoll/database';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';

describe('the schema of the gpuaas service', () => {
  let fixture: GpuaasFixture;
  beforeAll(async () => {
    fixture = await GpuaasFixture.start();
  });
  afterAll(() => fixture.stop());

  it('is what the entities say', async () => {
    expect(await migrationDrift(fixture.get(DataSource))).toEqual([]);
  });

  it('leaves nothing behind when it is taken back', async () => {
    const dataSource = fixture.get(DataSource);
    for (let left = dataSource.migrations.length; left > 0; left -= 1) await dataSource.undoLastMigration();
    const tables = await fixture.query(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'gpuaas' AND tablename <> 'migration'`,
    );
    await dataSource.runMigrations();
    expect(tables).toEqual([]);
  });
});
