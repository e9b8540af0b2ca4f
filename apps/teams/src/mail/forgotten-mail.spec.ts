import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { TeamsFixture } from '../teams-fixture.js';
import { MailSender } from './mail-sender.js';

const atOnce = 1_000;
let fixture: TeamsFixture;
beforeAll(async () => {
  // Without a server nothing is sent, and nothing removed, by itself.
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const sql = (statement: string) => fixture.get(DataSource).query<{ address: string }[]>(statement);
const write = (address: string, count: number, age: string) =>
  sql(`INSERT INTO mail (id, kind, address, data, created_at)
       SELECT gen_random_uuid(), 'notice', '${address}', '{}', now() - interval '${age}' FROM generate_series(1, ${count})`);
const addresses = async () => (await sql('SELECT address FROM mail')).map(({ address }) => address);

it('mail that was tried for a day is removed, so many at once, and no other', async () => {
  await write('young@example.com', 1, '23 hours');
  await write('old@example.com', 2 * atOnce + 1, '25 hours');
  const left: number[] = [];
  for (let hasMore = true; hasMore; left.push((await addresses()).length))
    hasMore = await fixture.get(MailSender).forgetSome();
  expect(left).toEqual([atOnce + 2, 2, 1]);
  expect(await addresses()).toEqual(['young@example.com']);
});
