import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { members, teams } from '@atoll/contracts/teams';
import { migrationDrift } from '@atoll/database';
import { DataSource } from 'typeorm';
import { operatorEmail, TeamsFixture } from '../teams-fixture.js';

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
      [{ name: last = name } = {}] = await fixture.query<{ name?: string }>(
        'SELECT name FROM migration ORDER BY id DESC LIMIT 1',
      );
    }
  }

  it('is what the entities say', async () => {
    expect(await migrationDrift(fixture.app.get(DataSource, { strict: false }))).toEqual([]);
  });

  it('holds one default policy, which allows every image', async () => {
    expect(await fixture.query('SELECT name FROM image_policy WHERE is_default')).toEqual([{ name: 'default' }]);
    await expect(
      fixture.query(
        `INSERT INTO image_policy (id, name, description, is_default) VALUES (gen_random_uuid(), 'x', '', true)`,
      ),
    ).rejects.toThrow();
  });

  it('gives addresses of before their one spelling, and leaves two users of one address alone', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    await undoFrom('EmailSpelling1798000000000');
    const before = [
      'zo\u00eb@m\u00fcnchen.de',
      'zoe\u0308@example.org',
      'a@k\u00f6ln.de',
      'a@xn--kln-sna.de',
      'plain@example.org',
    ];
    for (const email of before) {
      await fixture.query(
        `INSERT INTO "user" (id, email, name, timezone) VALUES (gen_random_uuid(), $1, 'spelt', 'UTC')`,
        [email],
      );
    }
    await dataSource.runMigrations();
    const found = await fixture.query<{ email: string }>(`SELECT email FROM "user" WHERE name = 'spelt'`);
    expect(found.map(({ email }) => email).toSorted()).toEqual(
      [
        'zo\u00eb@xn--mnchen-3ya.de',
        'zo\u00eb@example.org',
        'a@k\u00f6ln.de',
        'a@xn--kln-sna.de',
        'plain@example.org',
      ].toSorted(),
    );
  });

  it('takes for active only creators of teams, of the members there were before invitations', async () => {
    const { team, userIds } = await fixture.createTeam('member');
    const key = await fixture.wholeKeyOf(userIds[0] ?? '');
    const mine = await fixture.call(key, teams.create, {
      name: 'Mine',
      members: [{ email: 'early@example.com', name: 'Early', role: 'team_owner' }],
    });
    const late = { email: 'late@example.com', name: 'Late', role: 'team_owner' as const };
    await fixture.call(fixture.admin, members.add, { team_id: mine.id, ...late });
    // A team whose creator has left: those who were named then have accepted nothing.
    const left = await fixture.call(key, teams.create, { name: 'Left', members: [{ ...late, name: 'Named' }] });
    await fixture.call(fixture.admin, members.remove, { team_id: left.id, user_id: userIds[0] ?? '' });
    await undoFrom('Invitations1802000000000');
    await fixture.app.get(DataSource, { strict: false }).runMigrations();
    const found = await fixture.query(
      `SELECT u.email, m.status, m.name FROM membership m JOIN "user" u ON u.id = m.user_id
       WHERE m.team_id = ANY ($1) ORDER BY m.team_id, m.created_at, m.id`,
      [[team.id, mine.id, left.id]],
    );
    expect(found).toMatchObject([
      { email: operatorEmail, status: 'active' },
      { status: 'invited', name: 'member' },
      { status: 'active', name: 'member' },
      { email: 'early@example.com', status: 'invited', name: 'Early' },
      { email: 'late@example.com', status: 'invited', name: 'Late' },
      { email: 'late@example.com', status: 'invited' },
    ]);
  });

  it('leaves nothing behind when it is taken back', async () => {
    const dataSource = fixture.app.get(DataSource, { strict: false });
    for (let left = dataSource.migrations.length; left > 0; left -= 1) await dataSource.undoLastMigration();
    const tables = await fixture.query(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'teams' AND tablename <> 'migration'`,
    );
    await dataSource.runMigrations();
    expect(tables).toEqual([]);
  });
});
