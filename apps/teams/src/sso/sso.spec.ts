import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  links,
  members,
  sessions,
  singleSignOn,
  teams,
  type OpenedSession,
  type SsoFlow,
} from '@atoll/contracts/teams';
import {
  inTransactionBeside,
  OidcProvider,
  timeoutFactor,
  untilLockWaits,
  waitersForTurn,
  type OidcPerson,
  type OidcTrouble,
} from '@atoll/testing';
import { DataSource, type QueryRunner } from 'typeorm';
import { gateway, home, logIn, password, somebody, squat, tokenIn } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, type MadeTeam } from '../teams-fixture.js';

const callback = (id: string): string => `http://localhost:3000/api/user/sso/${id}/callback`;
// The provider speaks of what it does for development.
jest.spyOn(console, 'warn').mockImplementation(() => undefined);
jest.spyOn(console, 'info').mockImplementation(() => undefined);

let folder: string;
let corp: OidcProvider;
let open: OidcProvider;
let thin: OidcProvider;
let fixture: TeamsFixture;
let mapped: MadeTeam;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-sso-'));
  corp = await OidcProvider.start(callback('corp'));
  open = await OidcProvider.start(callback('open'));
  thin = await OidcProvider.start(callback('thin'), { hasThinIdTokens: true });
  const client = { client_id: 'atoll', client_secret: 'a secret of the specs' };
  const file = join(folder, 'sso.json');
  const grants: object[] = [];
  const write = () =>
    writeFileSync(
      file,
      JSON.stringify({
        providers: [
          {
            id: 'corp',
            name: 'Corp',
            issuer: corp.issuer,
            ...client,
            scope: 'openid email profile groups',
            trust_email: true,
            mapping: { grants },
          },
          { id: 'open', issuer: open.issuer, ...client },
          { id: 'thin', issuer: thin.issuer, ...client, scope: 'openid email profile groups' },
          { id: 'gone', issuer: 'http://localhost:9', ...client },
        ],
      }),
    );
  write();
  // The mapping names a team, which is made first, on another start of the same service.
  fixture = await TeamsFixture.start({ ssoFile: file, ssoPatienceMs: 5_000 * timeoutFactor });
  mapped = await fixture.createTeam('team_owner');
  const { SsoProviderClients } = await import('./sso-providers.js');
  for (const id of ['corp', 'thin']) {
    const provider = fixture.get(SsoProviderClients).find(id);
    provider.mapping.grants.push(
      { value: 'ml', team_id: mapped.team.id, role: 'member' },
      { value: 'leads', team_id: mapped.team.id, role: 'team_admin' },
    );
  }
});
afterAll(async () => {
  await fixture.stop();
  await corp.stop();
  await open.stop();
  await thin.stop();
  rmSync(folder, { recursive: true });
});

const begin = (provider = 'corp'): Promise<SsoFlow> => fixture.ask(singleSignOn.begin, { provider }, gateway);
const finish = (flow_token: string, url: URL, provider = 'corp'): Promise<OpenedSession> =>
  fixture.ask(singleSignOn.finish, { provider, flow_token, ...Object.fromEntries(url.searchParams), ...home }, gateway);

async function logInAt(server: OidcProvider, person: OidcPerson, provider = 'corp'): Promise<OpenedSession> {
  server.people.set(person.sub, person);
  const { url, flow_token } = await begin(provider);
  return finish(flow_token, await server.visit(url, person.sub), provider);
}

const someone = (more: Partial<OidcPerson> = {}): OidcPerson => {
  const sub = randomUUID();
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Ada', ...more };
};

const roleOf = async (userId: string): Promise<string | undefined> =>
  (await fixture.call(fixture.admin, teams.get, { team_id: mapped.team.id })).members.find(
    ({ user_id }) => user_id === userId,
  )?.role;

describe('single sign-on', () => {
  it('logs in whom the provider knows, by its subject: also when the address has changed', async () => {
    const person = someone();
    const first = await logInAt(corp, person);
    expect(first.user).toMatchObject({ email: person.email, name: 'Ada' });
    const again = await logInAt(corp, { ...person, email: `moved-${person.email}`, email_verified: false });
    expect(again.user.id).toBe(first.user.id);
    const { url } = await begin();
    expect(new URL(url).searchParams.get('code_challenge_method')).toBe('S256');
  });

  it('takes an account over that somebody else may have made: neither their password nor their session opens it', async () => {
    const verified = await somebody(fixture);
    const email = `${randomUUID()}@example.com`;
    const userId = await squat(fixture, email, 'of somebody else');
    const [{ team_id = '' } = {}] = await fixture.query<{ team_id: string }>(
      'SELECT team_id FROM membership WHERE user_id = $1',
      [userId],
    );
    const logInAsThem = () => logIn(fixture, { email }, undefined, 'of somebody else');
    const { session_id: id } = await logInAsThem();
    expect((await logInAt(corp, someone({ email }))).user.id).toBe(userId);
    expect((await errorOf(fixture.ask(sessions.verify, { id }, gateway))).code).toBe('unauthenticated');
    expect((await errorOf(logInAsThem())).code).toBe('unauthenticated');
    const { members: standing } = await fixture.call(fixture.admin, teams.get, { team_id });
    expect(standing.find(({ user_id }) => user_id === userId)).toMatchObject({ status: 'invited', api_token: false });
    await logInAt(corp, someone({ email: verified.email }));
    await logIn(fixture, verified);
  });

  it.each([
    ['a name that is too long', 'x'.repeat(5_000), 'x'.repeat(100)],
    ['a name of two lines', 'a\nb', undefined],
    ['a name that is blank', '   ', undefined],
    ['a name with a change of direction', 'a\u202eb', undefined],
    ['a name that PostgreSQL cannot store', 'a\0b', undefined],
  ])('shows %s as a name may be, or as the address', async (_what, name, shown) => {
    const person = someone({ name });
    expect((await logInAt(corp, person)).user.name).toBe(shown ?? person.email);
  });

  it('makes nobody a member of a suspended team, and logs in all the same', async () => {
    await fixture.call(fixture.admin, teams.suspend, { team_id: mapped.team.id });
    const person = someone({ groups: ['ml'] });
    const { user } = await logInAt(corp, person);
    expect(await roleOf(user.id)).toBeUndefined();
    await fixture.call(fixture.admin, teams.unsuspend, { team_id: mapped.team.id });
    await logInAt(corp, person);
    expect(await roleOf(user.id)).toBe('member');
  });

  it('makes one account of a person who logs in at two replicas at once: the second waits', async () => {
    const person = someone();
    const turn = `identity ${JSON.stringify({ issuer: corp.issuer, subject: person.sub })}`;
    expect(await waitersForTurn(fixture.get(DataSource), turn, () => logInAt(corp, person))).toBe(1);
  });

  it('finds an account by its address only where the provider calls it verified and the operator trusts it', async () => {
    const { email, userId } = await somebody(fixture);
    for (const verified of [false, undefined]) {
      const person = someone({ email, ...(verified !== undefined && { email_verified: verified }) });
      if (verified === undefined) delete person.email_verified;
      expect((await errorOf(logInAt(corp, person))).code).toBe('forbidden');
    }
    expect((await errorOf(logInAt(open, someone({ email }), 'open'))).code).toBe('forbidden');
    expect((await logInAt(corp, someone({ email: email.toUpperCase() }))).user.id).toBe(userId);
    await logIn(fixture, { email });
  });

  it('finds an account that was made meanwhile by the same rule', async () => {
    const person = someone();
    const { email = '' } = person;
    const dataSource = fixture.get(DataSource);
    const query = dataSource.query.bind(dataSource);
    let isMade = false;
    const spy = jest
      .spyOn(dataSource, 'query')
      .mockImplementation(async (sql: string, values?: object, runner?: QueryRunner) => {
        if (!isMade && sql.includes('INSERT INTO "user"')) {
          isMade = true;
          await squat(fixture, email, 'of somebody else');
        }
        return query<unknown>(sql, values, runner);
      });
    const refused = await errorOf(logInAt(open, person, 'open'));
    spy.mockRestore();
    expect([isMade, refused.code]).toEqual([true, 'forbidden']);
    expect(await fixture.query('SELECT FROM user_identity WHERE subject = $1', [person.sub])).toEqual([]);
  });

  it.each([true, false])(
    'makes an account again that was empty and is removed meanwhile, also where the provider is trusted: %j',
    async (isTrusted) => {
      const [server, provider] = isTrusted ? ([corp, 'corp'] as const) : ([open, 'open'] as const);
      const person = someone({ name: 'Ada by the provider' });
      const { email = '' } = person;
      const dataSource = fixture.get(DataSource);
      await dataSource.query(`INSERT INTO "user" (id, email, name) VALUES ($1, $2, 'As sent')`, [randomUUID(), email]);
      const logIns = await inTransactionBeside(dataSource, async (removing) => {
        await removing.query('SELECT FROM "user" WHERE email = $1 FOR UPDATE', [email]);
        const begun = logInAt(server, person, provider);
        await untilLockWaits(fixture, { unless: begun });
        await removing.query('DELETE FROM "user" WHERE email = $1', [email]);
        await removing.commitTransaction();
        return [begun];
      });
      expect((await logIns[0])?.user).toMatchObject({ name: 'Ada by the provider', teams: [] });
    },
  );

  it.each([true, false])(
    'logs in whom somebody has invited, as if the account were new; also where the provider is trusted: %j',
    async (isTrusted) => {
      const [server, provider] = isTrusted ? ([corp, 'corp'] as const) : ([open, 'open'] as const);
      const person = someone({ name: 'Ada by the provider' });
      const { email = '' } = person;
      const { team, keys } = await fixture.createTeam('team_owner');
      const asked = { team_id: team.id, email, name: 'As sent', role: 'member' } as const;
      const { user_id, invitation } = await fixture.call(keys[0] ?? '', members.add, asked);
      const unverified = { ...person, email_verified: false };
      expect((await errorOf(logInAt(server, unverified, provider))).code).toBe('forbidden');
      const { user } = await logInAt(server, person, provider);
      expect(user).toMatchObject({ id: user_id, name: 'Ada by the provider' });
      expect(user.teams).toMatchObject([{ id: team.id, status: 'invited' }]);
      const use = { token: tokenIn(invitation?.url ?? ''), password };
      expect((await errorOf(fixture.ask(links.use, use, gateway))).code).toBe('forbidden');
      expect((await logInAt(server, person, provider)).user.id).toBe(user_id);
    },
  );

  it('gives an account that has anything to nobody by its address: a password, a factor, an identity, a team, a key', async () => {
    const set = (statement: string) => async (userId: string) => void (await fixture.query(statement, [userId]));
    const belongings: Record<string, (userId: string) => Promise<unknown>> = {
      'a verified address': set('UPDATE "user" SET verified_at = now() WHERE id = $1'),
      'a password': set(`INSERT INTO password (user_id, hash) VALUES ($1, 'x')`),
      'an authenticator': set(`INSERT INTO second_factor (user_id, sealed, is_confirmed) VALUES ($1, 'x', true)`),
      'an identity': set(`INSERT INTO user_identity (issuer, subject, user_id) VALUES ('x', 'y', $1)`),
      'a team': set(`UPDATE membership SET status = 'active' WHERE user_id = $1`),
      'a key': (userId) => fixture.wholeKeyOf(userId),
    };
    for (const [what, give] of Object.entries(belongings)) {
      const person = someone();
      const { email = '' } = person;
      const asked = { team_id: mapped.team.id, email, name: 'Ada', role: 'viewer' } as const;
      const { user_id } = await fixture.call(mapped.keys[0] ?? '', members.add, asked);
      await give(user_id);
      expect([what, (await errorOf(logInAt(open, person, 'open'))).code]).toEqual([what, 'forbidden']);
    }
  });

  it('never gives away the operator, nor an account to who has no verified address', async () => {
    expect((await errorOf(logInAt(corp, someone({ email: 'operator@example.com' })))).code).toBe('forbidden');
    const { email: _none, ...without } = someone();
    expect((await errorOf(logInAt(corp, without))).code).toBe('forbidden');
  });

  it.each(['oper\u200bator@example.com', '"ada"@example.com', 'oper\u00adator@example.com'])(
    'makes no account of an address that no request may name, as one that looks like another: %j',
    async (email) => {
      const refused = await errorOf(logInAt(corp, someone({ email })));
      expect([refused.code, refused.message]).toEqual([
        'forbidden',
        'Corp sent an e-mail address for you that is not accepted here. Ask your administrator.',
      ]);
    },
  );

  it('says of an address that is missing, or not verified, that it is none', async () => {
    for (const claims of [{ email: undefined }, { email_verified: false }, { email: 'a b', email_verified: false }]) {
      expect((await errorOf(logInAt(corp, someone(claims)))).message).toBe(
        'Corp sent no verified e-mail address for you. Ask your administrator.',
      );
    }
  });

  it('gives teams and roles by its mapping at each log-in, and takes back only what it gave', async () => {
    const person = someone({ groups: ['ml'] });
    const { user } = await logInAt(corp, person);
    expect(await roleOf(user.id)).toBe('member');
    expect((await logInAt(corp, { ...person, groups: ['leads'] })).user.teams.map(({ role }) => role)).toEqual([
      'team_admin',
    ]);
    await logInAt(corp, { ...person, groups: [] });
    expect(await roleOf(user.id)).toBeUndefined();
    const [owner = ''] = mapped.keys;
    await fixture.call(owner, members.add, {
      team_id: mapped.team.id,
      email: person.email ?? '',
      name: 'Ada',
      role: 'viewer',
    });
    await logInAt(corp, { ...person, groups: ['leads'] });
    await logInAt(corp, { ...person, groups: [] });
    expect(await roleOf(user.id)).toBe('viewer');
  });

  it('takes what a provider says at its UserInfo endpoint alone, as the standard has it; the ID token decides whose it is', async () => {
    const person = someone({ groups: ['leads'] });
    const { user } = await logInAt(thin, person, 'thin');
    expect([user.email, user.name, await roleOf(user.id)]).toEqual([person.email, 'Ada', 'team_admin']);
    for (const trouble of [
      { status: 500, body: '{}' },
      { status: 200, body: JSON.stringify({ sub: 'another', email: person.email }) },
    ]) {
      const { url, flow_token } = await begin('thin');
      const answer = await thin.visit(url, person.sub);
      thin.misbehave = (path) => (path === '/me' ? trouble : undefined);
      expect((await errorOf(finish(flow_token, answer, 'thin'))).code).toBe(
        trouble.status === 500 ? 'unavailable' : 'unauthenticated',
      );
      thin.misbehave = () => undefined;
    }
  });

  it('takes an answer once, in the browser that asked, from the provider it was asked of', async () => {
    const person = someone();
    corp.people.set(person.sub, person);
    const flow = await begin();
    const url = await corp.visit(flow.url, person.sub);
    const other = await begin();
    expect((await errorOf(finish('', url))).code).toBe('unauthenticated');
    expect((await errorOf(finish(other.flow_token, url))).code).toBe('unauthenticated');
    expect((await errorOf(finish(flow.flow_token, url, 'open'))).code).toBe('unauthenticated');
    await finish(flow.flow_token, url);
    expect((await errorOf(finish(flow.flow_token, url))).code).toBe('unauthenticated');
  });

  it('says it clearly where somebody does not consent, or sends what the provider did not', async () => {
    for (const query of ['error=access_denied', 'code=x', 'code=x&state=y', 'state=y']) {
      const { flow_token } = await begin();
      expect((await errorOf(finish(flow_token, new URL(`${callback('corp')}?${query}`)))).code).toBe('unauthenticated');
    }
    expect((await errorOf(begin('nobody'))).code).toBe('not_found');
  });
});

describe('a provider', () => {
  it('that is down is 503, and so is one that answers nonsense', async () => {
    expect((await errorOf(begin('gone'))).code).toBe('unavailable');
    const server = await OidcProvider.start(callback('corp'));
    const { SsoProviderClients } = await import('./sso-providers.js');
    const clients = fixture.get(SsoProviderClients);
    const provider = { ...clients.find('corp'), id: 'odd', issuer: server.issuer };
    const secrets = { state: 's', nonce: 'n', verifier: 'v'.repeat(43) };
    const long = JSON.stringify({ issuer: server.issuer, authorization_endpoint: server.issuer }).padEnd(2 ** 21);
    for (const body of ['<html>', '{}', '[]', '{"issuer":"https://elsewhere.example.com"}', long]) {
      server.misbehave = () => ({ status: 200, body });
      expect((await errorOf(clients.urlFor(provider, secrets))).code).toBe('unavailable');
    }
    await server.stop();
  });

  const troubles: Record<string, OidcTrouble> = {
    'does not answer': 'hang',
    'has a fault': { status: 500, body: '{"error":"server_error"}' },
    'has a fault, on a page': { status: 502, body: '<html>' },
    'answers nonsense': { status: 200, body: '<html>' },
    'answers without end': { status: 200, body: ' '.repeat(2 ** 21) },
  };
  it.each(Object.entries(troubles))(
    'that %s when it is asked for the tokens is 503, and the log-in begun anew succeeds',
    async (_what, trouble) => {
      const person = someone();
      corp.people.set(person.sub, person);
      const { url, flow_token } = await begin();
      const answer = await corp.visit(url, person.sub);
      corp.misbehave = (path) => (path === '/token' ? trouble : undefined);
      expect((await errorOf(finish(flow_token, answer))).code).toBe('unavailable');
      corp.misbehave = () => undefined;
      expect((await logInAt(corp, person)).user.email).toBe(person.email);
    },
  );

  it('that refuses the code is 401: the answer was not of its making', async () => {
    const { flow_token, url } = await begin();
    const state = new URL(url).searchParams.get('state') ?? '';
    const answer = new URL(
      `${callback('corp')}?${new URLSearchParams({ code: 'made-up', state, iss: corp.issuer }).toString()}`,
    );
    expect((await errorOf(finish(flow_token, answer))).code).toBe('unauthenticated');
  });

  it('that replaces its keys goes on being understood', async () => {
    const person = someone();
    const { user } = await logInAt(open, person, 'open');
    await open.rotate();
    let again = await logInAt(open, person, 'open').catch((error: Error) => error);
    // At worst one log-in fails, with a clear sentence: the next one asks for the provider's keys again.
    if (again instanceof Error) again = await logInAt(open, person, 'open');
    expect(again).toMatchObject({ user: { id: user.id } });
  });
});
