import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DirectoryFixture } from './directory-fixture.js';
import { ExpiredClosings } from './expired-closings.js';

let fixture: DirectoryFixture;
beforeAll(async () => {
  fixture = await DirectoryFixture.start();
});
afterAll(() => fixture.stop());

const kinds = ['team', 'workspace'] as const;
const insert = (kind: string, until: string, count = 1) =>
  fixture.query(
    `INSERT INTO ${kind}_closing (${kind}_id, until) SELECT gen_random_uuid(), ${until} FROM generate_series(1, $1::int)`,
    [count],
  );
const removeSome = () => fixture.app.get(ExpiredClosings, { strict: false }).removeSome();
const countOf = async (kind: string) =>
  (await fixture.query<{ count: number }>(`SELECT count(*)::int FROM ${kind}_closing`))[0]?.count;

it.each(kinds)('closings of a %s go a day after they have expired, and those for ever stay', async (kind) => {
  await insert(kind, `now() - interval '25 hours'`, 1_500);
  await insert(kind, `now() - interval '23 hours'`);
  await insert(kind, `now() + interval '1 minute'`);
  await insert(kind, `'infinity'`);
  expect([await removeSome(), await removeSome()]).toEqual([true, false]);
  expect(await countOf(kind)).toBe(3);
});
