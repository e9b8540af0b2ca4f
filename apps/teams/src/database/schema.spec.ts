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

  /** Takes back this migration and those after it. */
  async function undoFrom(name: string): Promise<void> {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    for (let last = ''; last !== name; await dataSource.undoLastMigration()) {
      [{ name: last = name } = {}] = await fixture.query<{ name?: string }>('SELECT name FROM migration ORDER BY id DESC LIMIT 1');
    }
  }

  it('is what the entities say', async () => {
    expect(await migrationDrift(fixture.app.get(DataSource, { strict: false }))).toEqual([]);
  });

  it('holds one default policy, which allows every image', async () => {
    expect(await fixture.query('SELECT name FROM image_policy WHERE is_default')).toEqual([{ name: 'default' }]);
    await expect(
      fixture.query(`INSERT INTO image_policy (id, name, description, is_default) VALUES (gen_random_uuid(), 'x', '', true)`),
    ).rejects.toThrow();
  });

  it('gives addresses of before their one spelling, and leaves two users of one address alone', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    await undoFrom('EmailSpelling1798000000000');
    const before = ['zo\u00eb@m\u00fcnchen.de', 'zoe\u0308@example.org', 'a@k\u00f6ln.de', 'a@xn--kln-sna.de', 'plain@example.org'];
    for (const email of before) {
      await fixture.query(`INSERT INTO "user" (id, email, name, timezone) VALUES (gen_random_uuid(), $1, 'spelt', 'UTC')`, [email]);
    }
    await dataSource.runMigrations();
    const found = await fixture.query<{ email: string }>(`SELECT email FROM "user" WHERE name = 'spelt'`);
    expect(found.map(({ email }) => email).toSorted()).toEqual(
      ['zo\u00eb@xn--mnchen-3ya.de', 'zo\u00eb@example.org', 'a@k\u00f6ln.de', 'a@xn--kln-sna.de', 'plain@example.org'].toSorted(),
    );
  });

  it('leaves nothing behind when it is taken back', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    for (let left = dataSource.migrations.length; left > 0; left -= 1) await dataSource.undoLastMigration();
    const tables = await fixture.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'teams' AND tablename <> 'migration'`);
    await dataSource.runMigrations();
    expect(tables).toEqual([]);
  });
});
