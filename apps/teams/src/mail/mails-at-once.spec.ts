import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { somebody } from '../sessions/session-fixture.js';
import { TeamsFixture } from '../teams-fixture.js';
import { MailServer } from './mail-server-fixture.js';

let server: MailServer;
let fixture: TeamsFixture;
beforeAll(async () => {
  server = await MailServer.start();
  fixture = await TeamsFixture.start({ smtpUrl: server.url, mailsAtOnce: 4 });
});
afterAll(async () => {
  await fixture.stop();
  await server.stop();
});

const addNotice = (address: string) =>
  fixture.query(
    `INSERT INTO mail (id, kind, address, data, due_at) VALUES ($1, 'notice', $2, '{"event": "new_device"}', now() - interval '1 minute')`,
    [randomUUID(), address],
  );

it('mail that a server does not answer to delays no other, and invitations leave half of the places to what somebody waits for', async () => {
  const person = await somebody(fixture);
  await server.to(person.email, 2);
  await fixture.query(
    `WITH invited AS (SELECT gen_random_uuid() AS link_id, gen_random_uuid() AS team_id FROM generate_series(1, 9)),
       link AS (
         INSERT INTO one_time_link (id, user_id, email, is_proof, removes_factors, expires_at)
         SELECT link_id, u.id, u.email, true, false, now() + interval '1 hour' FROM invited, "user" u WHERE u.email = $1)
     INSERT INTO mail (id, kind, team_id, address, data, link_id)
     SELECT gen_random_uuid(), 'invitation', team_id, link_id || '@slow', '{"team_name": "A"}', link_id FROM invited`,
    [person.email],
  );
  while (server.unanswered < 2) await delay(10);
  await addNotice('ada@example.com');
  await server.to('ada@example.com');
  await addNotice('ada@slow');
  while (server.unanswered < 3) await delay(10);
  await addNotice('ada@example.com');
  await server.to('ada@example.com', 2);
  expect(server.unanswered).toBe(3);
});
