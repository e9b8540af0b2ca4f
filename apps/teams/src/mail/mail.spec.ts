import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { links, members, passkeys, secondFactors, sessions, singleSignOn, teams } from '@atoll/contracts/teams';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { createTransport } from 'nodemailer';
import { Secret, TOTP } from 'otpauth';
import { addPasskey, anAuthenticator } from '../passkeys/authenticator-fixture.js';
import {
  contextOf,
  elsewhere,
  gateway,
  logIn,
  password,
  refresh,
  somebody,
  tokenIn,
} from '../sessions/session-fixture.js';
import { errorOf, operatorEmail, TeamsFixture } from '../teams-fixture.js';
import { MailServer } from './mail-server-fixture.js';
import { mailText } from './mail-text.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { Administrators } from '../users/administrators.service.js';
import { DataSource } from 'typeorm';

let server: MailServer;
let fixture: TeamsFixture;
beforeAll(async () => {
  server = await MailServer.start();
  fixture = await TeamsFixture.start({
    smtpUrl: server.url,
    publicUrl: 'https://atoll.example.com',
    logInTries: '3/600',
    // In the order in which they are claimed.
    mailsAtOnce: 1,
  });
});
afterAll(async () => {
  await fixture.stop();
  await server.stop();
});
beforeEach(() => {
  server.isRefusing = false;
});

const link = { url: 'https://x/link#t', expiresAt: new Date('2026-11-30T08:15:20Z') };
const tokenOf = (text: string): string => /https:\/\/atoll\.example\.com\/link#([\w.-]+)/.exec(text)?.[1] ?? '';

describe('mail', () => {
  it('takes an invitation to its address and not to whoever invites, and proves the address', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const email = `${randomUUID()}@example.com`;
    const member = { team_id: team.id, email, name: 'Ada', role: 'member' } as const;
    const added = await fixture.call(keys[0] ?? '', members.add, member);
    expect(added.invitation).toEqual({ url: null, expires_at: expect.any(String) });
    const [mail] = await server.to(email);
    expect(mail?.text).toMatch(/^Message-ID: <[0-9a-f-]{36}@atoll\.example\.com>/im);
    expect(mail?.text).toContain('Research');
    expect(mail?.text).toContain(`until ${added.invitation?.expires_at.slice(0, 16).replace('T', ' ')} UTC`);
    await fixture.ask(links.use, { token: tokenOf(mail?.text ?? ''), password }, gateway);
    const opened = await logIn(fixture, { email });
    expect(await fixture.ask(sessions.verify, { id: opened.session_id }, gateway)).toMatchObject({ scope: 'user' });
  });

  it('takes its invitation to who is named when a team is made', async () => {
    const email = `${randomUUID()}@example.com`;
    const people = [{ email, name: 'Ada', role: 'member' as const }];
    const { members: made } = await fixture.call(fixture.admin, teams.create, {
      name: 'Protein folding',
      members: people,
    });
    expect(made.find((member) => member.email === email)?.invitation).toEqual({
      url: null,
      expires_at: expect.any(String),
    });
    const [mail] = await server.to(email);
    expect(mail?.text).toContain('Protein folding');
    await fixture.ask(links.use, { token: tokenOf(mail?.text ?? ''), password }, gateway);
    await logIn(fixture, { email });
  });

  it('gives an account that somebody else has made for an address to the owner of the address, by an invitation that comes there', async () => {
    const email = `${randomUUID()}@example.com`;
    const { team, keys } = await fixture.createTeam('team_owner');
    const other = await fixture.call(fixture.admin, teams.create, { name: 'Of its own' });
    const userId = (
      await fixture.call(keys[0] ?? '', members.add, { team_id: team.id, email, name: 'Ada', role: 'member' })
    ).user_id;
    const { url } = await fixture
      .get(LinkTokens)
      .issue(fixture.get(DataSource).manager, { userId, email, teamId: team.id, isProof: false });
    await fixture.ask(links.use, { token: tokenIn(url), password: 'of somebody else' }, gateway);
    const theirs = await logIn(fixture, { email }, undefined, 'of somebody else');
    await fixture.call(fixture.admin, members.add, { team_id: other.id, email, name: 'Ada', role: 'member' });
    // The link that was mailed first went out of use before it was sent, or was sent: the last mail is what matters.
    let invitation: { text: string } | undefined;
    for (let count = 1; !invitation; count++)
      invitation = (await server.to(email, count)).find(({ text }) => text.includes('Of its own'));
    await fixture.ask(links.use, { token: tokenOf(invitation?.text ?? ''), password }, gateway);
    expect((await errorOf(fixture.ask(sessions.verify, { id: theirs.session_id }, gateway))).code).toBe(
      'unauthenticated',
    );
    expect((await errorOf(logIn(fixture, { email }, undefined, 'of somebody else'))).code).toBe('unauthenticated');
    const opened = await logIn(fixture, { email });
    expect(await fixture.ask(sessions.verify, { id: opened.session_id }, gateway)).toMatchObject({ scope: 'user' });
  });

  it('takes a link for a new password to a user, nothing to anybody else, and answers both alike', async () => {
    const { email } = await somebody(fixture);
    const stranger = `${randomUUID()}@example.com`;
    const statements: string[][] = [];
    for (const address of [email, stranger]) {
      statements.push(await fixture.statementsOf(() => fixture.ask(links.reset, { email: address }, gateway)));
    }
    const asked = statements.map((list) => list.filter((text) => /log_in_bucket|INSERT INTO .*mail/.test(text)));
    expect(asked[0]).toEqual(asked[1]);
    // After the invitation to the team, and the notice of the first password.
    const found = (await server.to(email, 3)).find(({ text }) => text.includes('Subject: Set a new password'));
    await fixture.ask(links.use, { token: tokenOf(found?.text ?? ''), password: 'another good phrase' }, gateway);
    await logIn(fixture, { email }, undefined, 'another good phrase');
    expect(server.received.some(({ to }) => to.includes(stranger))).toBe(false);
    expect(await fixture.query('SELECT FROM mail WHERE address = $1', [stranger])).toEqual([]);
  });

  it('waits for an account that is being removed before it makes a link, and then goes to nobody', async () => {
    const email = `${randomUUID()}@example.com`;
    await fixture.query(`INSERT INTO "user" (id, email, name) VALUES (gen_random_uuid(), $1, 'Ada')`, [email]);
    await inTransactionBeside(fixture.get(DataSource), async (removing) => {
      await removing.query('DELETE FROM "user" WHERE email = $1', [email]);
      await fixture.ask(links.reset, { email }, gateway);
      await untilLockWaits(fixture, { text: 'SELECT id, email FROM "user"' });
      await removing.commitTransaction();
    });
    while ((await fixture.query('SELECT FROM mail WHERE address = $1', [email])).length > 0) await delay(20);
    expect(server.received.some(({ to }) => to.includes(email))).toBe(false);
  });

  it('is what a page offers to whoever has lost a password, where there is a server for it', async () => {
    expect(await fixture.ask(singleSignOn.list, {}, gateway)).toEqual({ sends_mail: true, data: [] });
  });

  it('does not flood an address: a few requests are sent, the others forgotten', async () => {
    const stranger = `${randomUUID()}@example.com`;
    server.isRefusing = true;
    for (let request = 0; request < 8; request++)
      expect(await fixture.ask(links.reset, { email: stranger }, gateway)).toEqual({});
    const { email } = await somebody(fixture);
    for (let request = 0; request < 8; request++) await fixture.ask(links.reset, { email }, gateway);
    const [row] = await fixture.query<{ count: string }>(
      `SELECT count(*) FROM mail WHERE address = $1 AND kind = 'reset'`,
      [email],
    );
    expect(Number(row?.count)).toBeLessThanOrEqual(3);
  });

  it('of one address holds ten invitations within an hour, whoever invites; the others come later', async () => {
    const email = `${randomUUID()}@example.com`;
    const people = [{ email, name: 'Ada', role: 'member' as const }];
    for (let team = 0; team < 12; team += 1)
      await fixture.call(fixture.admin, teams.create, { name: `Team ${team}`, members: people });
    await server.to(email, 10);
    const later = () =>
      fixture.query(`SELECT FROM mail WHERE address = $1 AND tries = 0 AND due_at > now() + interval '5 minutes'`, [
        email,
      ]);
    while ((await later()).length < 2) await new Promise((resolve) => setTimeout(resolve, 25));
    expect(server.received.filter(({ to }) => to.includes(email))).toHaveLength(10);
    // One that was tried before has its place already.
    await fixture.query('UPDATE mail SET tries = 1, due_at = now() WHERE address = $1', [email]);
    await server.to(email, 12);
  });

  it('that somebody waits for goes before invitations; one whose link was replaced does not go at all', async () => {
    const person = await somebody(fixture);
    await server.to(person.email, 2);
    const [invited, replaced] = [`${randomUUID()}@example.com`, `${randomUUID()}@example.com`];
    await fixture.query(
      `WITH link AS (
         INSERT INTO one_time_link (id, user_id, email, is_proof, removes_factors, expires_at, used_at)
         SELECT new.id::uuid, u.id, u.email, true, false, now() + interval '1 hour', new.used_at
         FROM "user" u, (VALUES ($2, NULL::timestamptz), ($3, now())) new (id, used_at) WHERE u.email = $1)
       INSERT INTO mail (id, kind, address, data, link_id, due_at)
       SELECT gen_random_uuid(), kind, address, data::jsonb, link_id::uuid, now() - late * interval '1 minute'
       FROM (VALUES ('invitation', $4, '{"team_name": "A"}', $2, 2), ('invitation', $5, '{"team_name": "B"}', $3, 2),
                    ('notice', $1, '{"event": "password_changed"}', NULL, 1)) new (kind, address, data, link_id, late)`,
      [person.email, randomUUID(), randomUUID(), invited, replaced],
    );
    await Promise.all([server.to(person.email, 3), server.to(invited)]);
    // Mails of other specs may come in between; two had come to the person before.
    const ours = server.received.flatMap(({ to }) => to).filter((to) => to === person.email || to === invited);
    expect(ours.slice(2)).toEqual([person.email, invited]);
    while ((await fixture.query('SELECT FROM mail WHERE address = $1', [replaced])).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 25));
    expect(server.received.some(({ to }) => to.includes(replaced))).toBe(false);
  });

  it('of a team that invites many waits for the next invitation of each other team, whatever else is sent in between', async () => {
    const person = await somebody(fixture);
    const [many, asMany, few] = [randomUUID(), randomUUID(), randomUUID()];
    const inviting: string[] = [many, asMany, few];
    // A notice is due whenever an invitation has gone.
    await fixture.query(
      `CREATE FUNCTION notice() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
         INSERT INTO mail (id, kind, address, data) VALUES (gen_random_uuid(), 'notice', 'ada@notice', '{"event": "password_changed"}');
         RETURN NULL;
       END $$`,
    );
    await fixture.query(
      `CREATE TRIGGER notice AFTER DELETE ON mail FOR EACH ROW WHEN (old.kind = 'invitation') EXECUTE FUNCTION notice()`,
    );
    await fixture.query(
      `WITH invited AS (
         SELECT gen_random_uuid() AS link_id, team_id, 2 AS late FROM unnest($2::uuid[]) team (team_id), generate_series(1, 3)
         UNION ALL SELECT gen_random_uuid(), $3, 1
       ), link AS (
         INSERT INTO one_time_link (id, user_id, email, is_proof, removes_factors, expires_at)
         SELECT link_id, u.id, u.email, true, false, now() + interval '1 hour' FROM invited, "user" u WHERE u.email = $1)
       INSERT INTO mail (id, kind, team_id, address, data, link_id, due_at)
       SELECT gen_random_uuid(), 'invitation', team_id, link_id || '@' || team_id, '{"team_name": "A"}', link_id, now() - late * interval '1 minute'
       FROM invited`,
      [person.email, [many, asMany], few],
    );
    const teamsOf = () => server.received.flatMap(({ to }) => to.map((address) => address.split('@')[1] ?? ''));
    const ours = () => teamsOf().filter((team) => inviting.includes(team));
    while (ours().length < 7) await new Promise((resolve) => setTimeout(resolve, 25));
    await fixture.query('DROP FUNCTION notice() CASCADE');
    expect(ours().slice(0, 3).toSorted()).toEqual(inviting.toSorted());
    expect(new Set(ours().slice(3, 5)).size).toBe(2);
    expect(teamsOf().filter((team) => team === 'notice').length).toBeGreaterThan(3);
  });

  it('that invites is of the team that does, by which teams take turns', async () => {
    server.isRefusing = true;
    const { team, keys } = await fixture.createTeam('team_owner');
    const email = `${randomUUID()}@example.com`;
    const person = { team_id: team.id, email, name: 'Ada', role: 'member' } as const;
    await fixture.call(keys[0] ?? '', members.add, person);
    expect(await fixture.query('SELECT team_id FROM mail WHERE address = $1', [email])).toEqual([{ team_id: team.id }]);
  });

  it('with a link that anybody may ask for leaves all links as they were, and the first that is used ends the others', async () => {
    const { email } = await somebody(fixture);
    const { url } = await fixture.call(fixture.admin, links.create, { email, remove_second_factors: true });
    // Whoever knows the address uses its limit up: nothing is mailed for the fourth request, that of the user.
    for (let request = 0; request < 4; request++)
      expect(await fixture.ask(links.reset, { email }, gateway)).toEqual({});
    // After the invitation to the team, and the notice of the first password.
    const mailed = (await server.to(email, 5)).filter(({ text }) => text.includes('Subject: Set a new password'));
    const [first = '', ...others] = [...mailed.map(({ text }) => tokenOf(text)), tokenIn(url)];
    expect(others).toHaveLength(3);
    for (const token of others) expect(await fixture.ask(links.check, { token }, gateway)).toEqual({});
    await fixture.ask(links.use, { token: first, password: 'another good phrase' }, gateway);
    await logIn(fixture, { email }, undefined, 'another good phrase');
    for (const token of others)
      expect((await errorOf(fixture.ask(links.check, { token }, gateway))).code).toBe('unauthenticated');
  });

  it('with a link that anybody may ask for leaves the one that a start has printed as it was', async () => {
    await fixture.query(`UPDATE one_time_link SET created_at = created_at - interval '1 hour' WHERE email = $1`, [
      operatorEmail,
    ]);
    const { link = '' } = await fixture.get(Administrators).ensure({ email: operatorEmail });
    await fixture.ask(links.reset, { email: operatorEmail }, gateway);
    const [mail] = await server.to(operatorEmail);
    for (const token of [tokenOf(mail?.text ?? ''), tokenIn(link)])
      expect(await fixture.ask(links.check, { token }, gateway)).toEqual({});
  });

  it('that the server has refused is tried again later each time, within an hour', async () => {
    server.isRefusing = true;
    const [mail] = await fixture.query<{ id: string }>(
      `INSERT INTO mail (id, kind, address, data, tries)
       VALUES (gen_random_uuid(), 'notice', 'ada@example.com', '{"event": "password_changed"}', 20) RETURNING id`,
    );
    const tried = () =>
      fixture.query<{ minutes: number }>(
        `SELECT EXTRACT(EPOCH FROM due_at - now())::float8 / 60 AS minutes FROM mail WHERE id = $1 AND tries = 21`,
        [mail?.id],
      );
    while ((await tried()).length === 0) await new Promise((resolve) => setTimeout(resolve, 25));
    const [{ minutes } = { minutes: 0 }] = await tried();
    expect(minutes).toBeGreaterThan(30);
    expect(minutes).toBeLessThanOrEqual(60);
    await fixture.query('DELETE FROM mail WHERE id = $1', [mail?.id]);
  });

  it('that the server refuses is sent again, as the same mail', async () => {
    const { email } = await somebody(fixture);
    server.isRefusing = true;
    await fixture.ask(links.reset, { email }, gateway);
    const tried = () =>
      fixture.query<{ id: string }>(`SELECT id FROM mail WHERE address = $1 AND kind = 'reset' AND tries > 0`, [email]);
    let mail: { id: string } | undefined;
    while (!mail) [mail] = await tried();
    const before = server.received.length;
    server.isRefusing = false;
    await fixture.query('UPDATE mail SET due_at = now()');
    // The invitation and the notice of the first password are due too.
    const found = (await server.to(email, 3)).filter(({ text }) => text.includes(mail.id));
    expect(found).toHaveLength(1);
    expect(server.received.length).toBeGreaterThan(before);
  });

  it('tells of a new device, a changed password and a stolen cookie, and holds no token', async () => {
    const person = await somebody(fixture);
    const first = await logIn(fixture, person);
    await logIn(fixture, person, elsewhere);
    await refresh(fixture, await refresh(fixture, first));
    await errorOf(refresh(fixture, first, elsewhere));
    const received = await server.to(person.email, 4);
    const mails = received.map(({ text }) => text).join('\n');
    for (const words of [
      'a network that is new to it',
      'password of your account was changed',
      'was used twice',
      elsewhere.address,
    ]) {
      expect(mails).toContain(words);
    }
    // The first network of a user is none that is new.
    expect(received.filter(({ text }) => text.includes('a network that is new to it'))).toHaveLength(1);
    expect(mails).not.toContain(first.refresh_token);
  });

  it('tells of each second factor that is added or removed', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const { secret } = await fixture.ask(secondFactors.begin, {}, context);
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    const { recovery_codes } = await fixture.ask(secondFactors.confirm, { code }, context);
    const { id } = await addPasskey(fixture, context, anAuthenticator());
    await fixture.ask(passkeys.remove, { id }, context);
    await fixture.ask(secondFactors.remove, { code: recovery_codes[0] ?? '' }, context);
    // The first two are the link, and that it has set a password.
    const texts = (await server.to(person.email, 6)).map(({ text }) => text);
    const told = (what: string) => texts.filter((text) => text.includes(`was ${what} your account`)).length;
    expect([told('added to'), told('removed from')]).toEqual([2, 2]);
  });

  it('tells a user once that log-ins to the account are slowed, with the same statements for an address that nobody has', async () => {
    const person = await somebody(fixture);
    const from = { ...elsewhere, device: 'Your account is locked. Open it at https://evil.example' };
    const statements: string[][] = [];
    for (const email of [person.email, `${randomUUID()}@example.com`]) {
      const attempt = () => errorOf(logIn(fixture, { email }, from, 'wrong password'));
      for (let tries = 0; tries < 3; tries++) expect((await attempt()).code).toBe('unauthenticated');
      statements.push(await fixture.statementsOf(attempt));
      for (let tries = 0; tries < 3; tries++) expect((await attempt()).code).toBe('too_many_requests');
    }
    expect(statements[0]).toEqual(statements[1]);
    const mails = (await server.to(person.email, 3)).filter(({ text }) => text.includes('tried to log in'));
    expect(mails).toHaveLength(1);
    expect(mails[0]?.text).toContain(elsewhere.address);
    // Whoever has no key must not write to users by the header of a request.
    expect(mails[0]?.text).not.toContain('evil');
    // A mail that has come is in the queue until the server's answer is taken in.
    const toOthers = await fixture.query(
      `SELECT FROM mail WHERE data ->> 'event' = 'log_ins_slowed' AND address <> $1`,
      [person.email],
    );
    expect(toOthers).toEqual([]);
  });

  it('shows names as text, whatever is in them', () => {
    const invitation = { kind: 'invitation', data: { team_name: '<img src=x onerror=alert(1)>"' } } as const;
    const textAt = (hasProviders: boolean) => mailText(invitation, { publicUrl: 'https://x', hasProviders }, link);
    const { html, subject, text } = textAt(false);
    expect(text).toContain('once, until 2026-11-30 08:15 UTC:\n\nhttps://x/link#t\n');
    expect(
      [text, textAt(true).text].map((one) =>
        one.includes('by single sign-on, you need neither the link nor a password'),
      ),
    ).toEqual([false, true]);
    expect(html).not.toContain('<img');
    expect(subject).toContain('<img');
  });

  it('names a team in quotes, and none by what would become a link', () => {
    const mailOf = (team_name: string) =>
      mailText({ kind: 'invitation', data: { team_name } }, { publicUrl: 'https://x', hasProviders: false }, link);
    for (const name of ['Research', 'Prof. Ada’s team, no. 7.5', 'R&D: a/b']) {
      const { subject, text } = mailOf(name);
      expect([subject, text.startsWith(`You are invited to join the team “${name}” on Atoll`)]).toEqual([
        `Join the team “${name}” on Atoll`,
        true,
      ]);
    }
    for (const name of ['See https://203.0.113.9/x', 'Open evil.example', 'a@evil.example', 'evil.рф']) {
      const { subject, text, html } = mailOf(name);
      expect(subject).toBe('Join a team on Atoll');
      expect(text + html).not.toContain('evil');
    }
  });

  it('has no subject that is decoded to other words than it holds', async () => {
    const invitation = { kind: 'invitation', data: { team_name: '=?utf-8?B?TG9ja2Vk?=' } } as const;
    const text = mailText(invitation, { publicUrl: 'https://x', hasProviders: false }, link);
    const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail(text);
    expect((message as Buffer).toString('latin1')).toMatch(
      /^Subject: =\?UTF-8\?Q\?Join_the_team_=E2=80=9C=3D=3Futf-8=3FB/m,
    );
  });
});
