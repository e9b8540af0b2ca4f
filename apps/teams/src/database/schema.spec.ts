import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrationDrift } from '@atoll/database';
import { DataSource } from 'typeorm';
import { TeamsFixture } from '../teams-fixture.js';

describe('the schema of the teams service', () => {
  let fixture: TeamsFixture;
  beforeAll(async () => {
    fixture = await TeamsFixture.start();
  });
  afterAll(() => fixture.stop());

  it('is what the entities say', async () => {
    expect(await migrationDrift(fixture.app.get(DataSource, { strict: false }))).toEqual([]);
  });

  it('holds one default policy, which allows every image', async () => {
    expect(await fixture.query('SELECT name FROM image_policy WHERE is_default')).toEqual([{ name: 'default' }]);
    await expect(
      fixture.query(`INSERT INTO image_policy (id, name, description, is_default) VALUES (gen_random_uuid(), 'x', '', true)`),
    ).rejects.toThrow();
  });

  it('leaves nothing behind when it is taken back', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    for (let left = dataSource.migrations.length; left > 0; left -= 1) await dataSource.undoLastMigration();
    const tables = await fixture.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'teams' AND tablename <> 'migration'`);
    await dataSource.runMigrations();
    expect(tables).toEqual([]);
  });
});
