import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { teams, type TeamPage } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { Json, textOf } from '@atoll/rpc';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { errorOf, operatorEmail, TeamsFixture } from '../teams-fixture.js';
import { TeamsService } from './team.service.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  // Many of one instant, as an import makes them: the id decides among these.
  await fixture.query(`INSERT INTO team (id, name, description, policy_id, created_at)
    SELECT gen_random_uuid(), n::text, '', (SELECT id FROM image_policy WHERE is_default), now() - (n / 7) * interval '1 second'
    FROM generate_series(1, 100) n`);
  await fixture.query(`UPDATE team SET deleted_at = now() WHERE name::int % 10 = 3`);
});
afterAll(() => fixture.stop());

const list = (page: number, limit: number): Promise<TeamPage> =>
  fixture.call(fixture.admin, teams.list, { page, limit });
/** By one statement, and so of one snapshot. */
const counts = async (): Promise<{ kept: number; real: number }> => {
  const [row] = await fixture.query<{ kept: number; real: number }>(
    `SELECT (SELECT sum(live)::int FROM team_count) AS kept, (SELECT count(*)::int FROM team WHERE deleted_at IS NULL) AS real`,
  );
  return row ?? { kept: -1, real: -2 };
};

describe('the listing of all teams', () => {
  it('law: has on each page what lies there by creation and id, with the number of all, from whichever end it is reached', async () => {
    const all = await fixture.query<{ id: string }>(
      'SELECT id FROM team WHERE deleted_at IS NULL ORDER BY created_at, id',
    );
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 100 }), fc.integer({ min: 1, max: 100 }), async (page, limit) => {
        const { data, pagination } = await list(page, limit);
        expect(pagination).toEqual({ page, limit, total: all.length });
        expect(data.map(({ id }) => id)).toEqual(all.slice(page * limit, (page + 1) * limit).map(({ id }) => id));
      }),
      {
        ...runs(150),
        examples: [
          [0, 10],
          [4, 10],
          [5, 10],
          [8, 10],
          [9, 10],
          [0, 100],
          [1, 45],
          [1, 46],
          [1_000_000, 100],
        ],
      },
    );
  });
});

describe('the listing of the teams of a user', () => {
  it('is the JSON of the database, which nobody makes into objects here, as is that of one team', async () => {
    const { keys, team } = await fixture.createTeam('team_owner');
    const context = await fixture.contextOf(keys[0] ?? '', teams.list, {});
    const service = fixture.get(TeamsService);
    const listed = await service.list({ page: 0, limit: 100 }, context);
    const one = await service.get({ team_id: team.id }, context);
    expect([listed, one].map((json) => json instanceof Json)).toEqual([true, true]);
    const [page, alone] = [listed, one].map((json) => JSON.parse(textOf(json.parts)) as object);
    expect(page).toEqual({ data: [alone], pagination: { page: 0, limit: 100, total: 1 } });
  });

  it('is read twice at once for one user, while that of others goes on', async () => {
    const keys = [await fixture.createTeam('viewer'), await fixture.createTeam('viewer')].flatMap((made) => made.keys);
    const [ours, theirs] = await Promise.all(keys.map((key) => fixture.contextOf(key, teams.list, {})));
    const service = fixture.get(TeamsService);
    const open = Promise.withResolvers<void>();
    const statements = fixture.get(Statements);
    const query = statements.query.bind(statements);
    const reads = jest.spyOn(statements, 'query').mockImplementation(async (text, values) => {
      await open.promise;
      return query(text, values);
    });
    const all = [ours!, ours!, ours!, ours!, theirs!].map((context) => service.list({ page: 0, limit: 100 }, context));
    expect(reads).toHaveBeenCalledTimes(3);
    open.resolve();
    await Promise.all(all);
    expect(reads).toHaveBeenCalledTimes(5);
    reads.mockRestore();
  });
});

describe('a search through teams', () => {
  const made = new Map<string, string>();
  beforeAll(async () => {
    for (const name of ['Zebra Ärzte', 'zebra crossing', 'a%b_c\\d\'e"f', 'aXbXcXd', 'Zebras of old']) {
      made.set(name, (await fixture.call(fixture.admin, teams.create, { name })).id);
    }
    await fixture.call(fixture.admin, teams.delete, { team_id: made.get('Zebras of old') ?? '' });
  });

  const find = async (search: string, key = fixture.admin): Promise<string[]> =>
    (await fixture.call(key, teams.list, { search, limit: 100 })).data.map(({ name }) => name);

  it('finds a part of the name in either case, and a whole id', async () => {
    for (const search of ['zebra', 'ZEBRA', 'ebra '])
      expect(await find(search)).toEqual(['Zebra Ärzte', 'zebra crossing']);
    expect(await find('ärzTE')).toEqual(['Zebra Ärzte']);
    const id = made.get('zebra crossing') ?? '';
    expect(await find(id)).toEqual(['zebra crossing']);
    expect(await find(id.toUpperCase())).toEqual(['zebra crossing']);
    for (const search of [id.slice(0, -1), made.get('Zebras of old') ?? '', 'zebra  crossing', '  ', 'z'.repeat(200)])
      expect(await find(search)).toEqual([]);
  });

  it('is plain: %, _, \\ and quotes mean themselves', async () => {
    for (const search of ['%', '_', '\\', "'", '"', 'a%b', 'b_c', 'c\\d', '\'e"'])
      expect(await find(search)).toEqual(['a%b_c\\d\'e"f']);
    for (const search of ['a%c', 'a_b', '%%', '^a', '.', '*', '\\%']) expect(await find(search)).toEqual([]);
  });

  it('has pages and a total of its own; an empty one is that of all', async () => {
    const { admin } = fixture;
    const asked = { search: 'zebra', limit: 1 };
    const pages = await Promise.all([0, 1, 2].map((page) => fixture.call(admin, teams.list, { ...asked, page })));
    expect(pages.map(({ data }) => data.map(({ name }) => name))).toEqual([['Zebra Ärzte'], ['zebra crossing'], []]);
    expect(pages.map(({ pagination }) => pagination)).toEqual([0, 1, 2].map((page) => ({ page, limit: 1, total: 2 })));
    const [found] = (await fixture.call(admin, teams.list, asked)).data;
    expect(found).toEqual(await fixture.call(admin, teams.get, { team_id: found?.id ?? '' }));
    expect(await fixture.call(admin, teams.list, { search: '', page: 2 })).toEqual(
      await fixture.call(admin, teams.list, { page: 2 }),
    );
    expect((await errorOf(fixture.call(admin, teams.list, { search: 'z'.repeat(201) }))).code).toBe('invalid_input');
  });

  it('neither finds nor counts a team that the caller may not read, by its name or by its id', async () => {
    const [ours, theirs] = [await fixture.createTeam('viewer'), await fixture.createTeam('viewer')];
    const key = ours.keys[0] ?? '';
    expect(ours.team.name).toBe(theirs.team.name);
    const { data, pagination } = await fixture.call(key, teams.list, { search: ours.team.name });
    expect([data.map(({ id }) => id), pagination.total]).toEqual([[ours.team.id], 1]);
    for (const search of [theirs.team.id, 'zebra', '%'])
      expect(await fixture.call(key, teams.list, { search })).toEqual({
        data: [],
        pagination: { page: 0, limit: 10, total: 0 },
      });
  });
});

describe('the number of all teams', () => {
  it('is exact at every instant while many are created and deleted at once, and what fails changes nothing', async () => {
    const { kept: before } = await counts();
    let isDone = false;
    const watched: { kept: number; real: number }[] = [];
    const watch = (async () => {
      while (!isDone) watched.push(await counts());
    })();
    const lives = Array.from({ length: 24 }, async (_, at) => {
      const made = await fixture.call(fixture.admin, teams.create, { name: `team ${at}` });
      const refused = fixture.call(fixture.admin, teams.create, {
        name: 'x',
        members: [{ email: operatorEmail, name: 'x', role: 'member' }],
      });
      expect((await errorOf(refused)).code).toBe('invalid_input');
      if (at % 2 === 0) await fixture.call(fixture.admin, teams.delete, { team_id: made.id });
    });
    await Promise.all(lives);
    isDone = true;
    await watch;
    expect(watched.length).toBeGreaterThan(3);
    for (const { kept, real } of watched) expect(kept).toBe(real);
    expect(await counts()).toEqual({ kept: before + 12, real: before + 12 });
  });

  it('counts a transaction that is rolled back as if it had never been', async () => {
    const before = await counts();
    await fixture
      .query(
        `WITH made AS (INSERT INTO team (id, name, description, policy_id)
           SELECT gen_random_uuid(), 'x', '', id FROM image_policy WHERE is_default RETURNING 1)
         SELECT 1 / (SELECT count(*)::int - count(*)::int FROM made)`,
      )
      .catch(() => undefined);
    expect(await counts()).toEqual(before);
  });

  it('follows whatever is done to the rows', async () => {
    const { kept } = await counts();
    const change = async (sql: string): Promise<number> => {
      await fixture.query(sql);
      const now = await counts();
      expect(now.kept).toBe(now.real);
      return now.kept - kept;
    };
    expect(
      await change(`INSERT INTO team (id, name, description, policy_id, deleted_at)
        SELECT gen_random_uuid(), 'by hand', '', id, CASE n WHEN 1 THEN now() END
        FROM image_policy, generate_series(1, 4) n WHERE is_default`),
    ).toBe(3);
    expect(await change(`UPDATE team SET deleted_at = now() WHERE name = 'by hand'`)).toBe(0);
    expect(await change(`UPDATE team SET deleted_at = NULL WHERE name = 'by hand'`)).toBe(4);
    expect(await change(`UPDATE team SET description = 'changed' WHERE name = 'by hand'`)).toBe(4);
    expect(
      await change(
        `UPDATE team SET deleted_at = now() WHERE id = (SELECT id FROM team WHERE name = 'by hand' LIMIT 1)`,
      ),
    ).toBe(3);
    expect(await change(`DELETE FROM team WHERE name = 'by hand'`)).toBe(0);
  });
});
