import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TeamsFixture } from '../teams-fixture.js';
import { logIn, somebody, verify } from './session-fixture.js';
import { SessionUpkeep } from './session-upkeep.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const many = 2_500;
const count = async (table: string): Promise<number> =>
  (await fixture.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`))[0]?.count ?? 0;

it('what a flood of log-ins leaves behind is removed a batch at a time, and nothing that is in use', async () => {
  const person = await somebody(fixture);
  const session = await logIn(fixture, person);
  const before = [await count('session'), await count('log_in_network'), await count('one_time_link')];
  await fixture.query('UPDATE log_in_bucket SET full_at = now()');
  const past = `now() - interval '200 days'`;
  const rows = `generate_series(1, ${many}) n`;
  for (const statement of [
    `INSERT INTO log_in_bucket (id, full_at) SELECT sha256(n::text::bytea), ${past} FROM ${rows}`,
    `INSERT INTO log_in_bucket (id, full_at) VALUES (sha256('full'), now() + interval '1 hour')`,
    `INSERT INTO sso_flow (id, provider, expires_at) SELECT gen_random_uuid(), 'corp', ${past} FROM ${rows}`,
    `INSERT INTO sso_flow (id, provider, expires_at) VALUES (gen_random_uuid(), 'corp', now() + interval '1 minute')`,
    `INSERT INTO passkey_challenge (id, challenge, expires_at) SELECT gen_random_uuid(), 'x', ${past} FROM ${rows}`,
    `INSERT INTO log_in_network (user_id, network, last_used_at) SELECT '${person.userId}', n::text, ${past} FROM ${rows}`,
    `INSERT INTO session (id, user_id, address, device, idle_until, expires_at)
     SELECT gen_random_uuid(), '${person.userId}', '', '', ${past}, ${past} FROM ${rows}`,
  ]) {
    await fixture.query(statement);
  }
  while (await fixture.get(SessionUpkeep).removeSome());
  expect([await count('session'), await count('log_in_network'), await count('one_time_link')]).toEqual(before);
  expect([await count('log_in_bucket'), await count('sso_flow'), await count('passkey_challenge')]).toEqual([1, 1, 0]);
  await verify(fixture, session);
});

it('a table that cannot be cleaned holds up no other one', async () => {
  await fixture.query(
    `INSERT INTO sso_flow (id, provider, expires_at) VALUES (gen_random_uuid(), 'gone', now() - interval '1 minute')`,
  );
  await fixture.query('ALTER TABLE session RENAME TO session_away');
  expect(await fixture.get(SessionUpkeep).removeSome()).toBe(false);
  await fixture.query('ALTER TABLE session_away RENAME TO session');
  expect(await fixture.query(`SELECT FROM sso_flow WHERE provider = 'gone'`)).toEqual([]);
});
