import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { TeamsFixture } from '../teams-fixture.js';
import { UserRegistry } from './user-registry.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const find = (people: { email: string; name: string }[]): Promise<string[]> =>
  fixture.get(Transactions).run((manager) => fixture.get(UserRegistry).findOrCreate(manager, people));
const person = () => ({ email: `${randomUUID()}@example.com`, name: 'Ada' });

it('a new address that many transactions name at once is one user, and none of them is refused', async () => {
  for (let round = 0; round < 100; round += 1) {
    const people = [person()];
    const found = await Promise.all(Array.from({ length: 8 }, () => find(people)));
    expect(new Set(found.flat()).size).toBe(1);
  }
});

it('an address has the same id after its user was removed, in the form of a random one', async () => {
  const people = [person(), person()];
  const [first, second] = await find(people);
  await fixture.query('DELETE FROM "user" WHERE id = ANY ($1)', [[first, second]]);
  expect(await find(people.toReversed())).toEqual([second, first]);
  expect(first).not.toBe(second);
  expect(first).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

it('an address whose id a user has who had the address before gets another one', async () => {
  const people = [person()];
  const [before] = await find(people);
  await fixture.query('UPDATE "user" SET email = $2 WHERE id = $1', [before, `${randomUUID()}@example.com`]);
  const [now] = await find(people);
  expect(now).not.toBe(before);
  expect(await find(people)).toEqual([now]);
});
