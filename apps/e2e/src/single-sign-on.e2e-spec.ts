import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  describeWhere,
  freePort,
  makeServerFolder,
  type OidcPerson,
  OidcProvider,
  timeoutFactor,
} from '@atoll/testing';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { chromiumLacking, launchChromium } from './chromium.js';
import { call, type TeamView } from './client.js';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
/** The platform waits 5 s for a provider, on every machine. */
const mostTries = timeoutFactor > 1 ? 5 : 1;
// The provider speaks of what it does for development.
jest.spyOn(console, 'warn').mockImplementation(() => undefined);
jest.spyOn(console, 'info').mockImplementation(() => undefined);

describeWhere(chromiumLacking, 'single sign-on in a browser', () => {
  const ada: OidcPerson = { sub: 'ada', email: 'ada@corp.example', email_verified: true, name: 'Ada Lovelace' };
  let folder: string;
  let home: string;
  let provider: OidcProvider;
  let platform: RunningPlatform;
  let browser: Browser;
  let teamId: string;
  let adminKey: string;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    folder = makeServerFolder();
    const port = await freePort();
    home = `http://localhost:${port}`;
    // Another site than the platform's: what SameSite keeps back is kept back here.
    provider = await OidcProvider.start(`${home}/api/user/sso/corp/callback`, {
      host: '127.0.0.1',
      hasThinIdTokens: true,
    });
    const env = { ATOLL_DATA_DIR: folder, PORT: String(port) };
    // The mapping names a team, so the team is made first.
    const first = await startPlatform(topology, env);
    const { body } = await call<TeamView>('POST', '/team', {
      url: home,
      key: first.adminKey,
      body: { name: 'Protein folding' },
    });
    teamId = body.id;
    await first.stop();
    const grants = [
      { value: 'leads', team_id: teamId, role: 'team_admin' },
      { value: 'ml', team_id: teamId, role: 'member' },
    ];
    const client = { client_id: 'atoll', client_secret: 'a secret of the specs', scope: 'openid email profile groups' };
    const corp = {
      id: 'corp',
      name: 'Corp',
      issuer: provider.issuer,
      ...client,
      trust_email: true,
      mapping: { claim: 'groups', grants },
    };
    // Nobody listens there.
    const away = { ...corp, id: 'away', name: 'Away', issuer: `http://127.0.0.1:${await freePort()}` };
    const file = join(folder, 'sso.json');
    writeFileSync(file, JSON.stringify({ providers: [corp, away] }), { mode: 0o600 });
    ({ adminKey } = first);
    platform = await startPlatform(topology, { ...env, ATOLL_ADMIN_KEY: adminKey, ATOLL_SSO_FILE: file });
    browser = await launchChromium();
  });
  beforeEach(async () => {
    provider.misbehave = () => undefined;
    provider.people.set(ada.sub, { ...ada, groups: ['ml'] });
    context = await browser.newContext({ baseURL: home });
    context.setDefaultTimeout(60_000 * timeoutFactor);
    page = await context.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
    await provider?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const choose = (name = 'Corp') => page.getByRole('link', { name: `Log in with ${name}` }).click();
  /**
   * What follows the choice of Corp; it is chosen again where a busy machine has made Corp too slow for the platform.
   */
  async function comes(expected: Locator): Promise<void> {
    const away = page.getByText(/^Corp cannot be reached/);
    for (let tries = 1; tries < mostTries; tries += 1) {
      await expected.or(away).first().waitFor({ state: 'attached' });
      if (!(await away.isVisible())) break;
      await page.getByRole('link', { name: 'Log in another way' }).click();
      await choose();
    }
    await expected.waitFor({ state: 'attached' });
  }
  const isInside = () => comes(page.locator('nav[aria-label=Main]'));
  const setGroups = (...groups: string[]) => provider.people.set(ada.sub, { ...ada, groups });

  /** As somebody who has not logged in at the provider yet. */
  async function logIn(person = ada): Promise<void> {
    await page.goto('/sign-in');
    await choose();
    await comes(page.locator('input[name=login]'));
    await entersAs(person);
  }
  async function entersAs(person: OidcPerson): Promise<void> {
    await page.locator('input[name=login]').fill(person.sub);
    await page.locator('input[name=password]').fill('whatever');
    await page.locator('button[type=submit]').click();
    // Consent, once for each session at the provider.
    const consent = page.getByRole('button', { name: 'Continue' });
    const inside = page.locator('nav[aria-label=Main]');
    await consent
      .or(inside)
      .or(page.getByRole('heading', { name: 'You are not logged in' }))
      .first()
      .waitFor({ state: 'attached' });
    if (await consent.isVisible()) await consent.click();
  }

  async function roleOfAda(): Promise<string | undefined> {
    const { body } = await call<TeamView>('GET', `/team/${teamId}`, { url: home, key: platform.adminKey });
    return body.members.find(({ email }) => email === ada.email)?.role;
  }

  /** A page that says what is the matter, from which there is a way on. */
  async function expectRefusal(status: number, sentence: RegExp, open: () => Promise<unknown>): Promise<void> {
    const answered = page.waitForResponse(
      (response) => response.url().startsWith(`${home}/api/user/sso/`) && response.status() !== 302,
    );
    await open();
    expect((await answered).status()).toBe(status);
    await page.getByRole('heading', { name: 'You are not logged in' }).waitFor();
    expect(await page.locator('p').first().textContent()).toMatch(sentence);
    expect((await context.cookies()).filter(({ name }) => name === 'atoll-session')).toEqual([]);
    await page.getByRole('link', { name: 'Log in another way' }).click();
    await page.getByRole('link', { name: 'Log in with Corp' }).waitFor();
  }

  it('logs in through the provider, to the page of the platform, with the roles that the mapping gives at each log-in', async () => {
    await logIn();
    await isInside();
    expect(new URL(page.url()).origin).toBe(home);
    expect(page.url()).not.toMatch(/code|state|token|eyJ/);
    const kept = await page.evaluate(
      'JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie',
    );
    expect(String(kept)).not.toMatch(/eyJ|[\w-]{43}/);
    expect(await roleOfAda()).toBe('member');
    await page.reload();
    await isInside();

    setGroups('leads', 'ml');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out.').waitFor();
    // The provider knows the browser still.
    await choose();
    await isInside();
    expect(await roleOfAda()).toBe('team_admin');

    setGroups();
    await page.getByRole('button', { name: 'Log out' }).click();
    await choose();
    await isInside();
    expect(await roleOfAda()).toBeUndefined();
  });

  it('logs in in each of several tabs in which it was begun at once', async () => {
    const tabs = [page, await context.newPage()];
    for (const tab of tabs) {
      page = tab;
      await page.goto('/sign-in');
      await choose();
      await comes(page.locator('input[name=login]'));
    }
    for (const tab of tabs) {
      page = tab;
      await entersAs(ada);
      await isInside();
    }
  });

  it('has who was invited accept in the console, without a password', async () => {
    const eve = { sub: 'eve', email: 'eve@corp.example', email_verified: true, name: 'Eve' };
    provider.people.set(eve.sub, eve);
    const url = home;
    const body = { email: eve.email, name: 'Eve', role: 'member' };
    expect((await call('POST', `/team/${teamId}/members`, { url, key: adminKey, body })).status).toBe(201);
    const statusOfEve = async () => {
      const { body: team } = await call<TeamView>('GET', `/team/${teamId}`, { url, key: adminKey });
      return team.members.find(({ email }) => email === eve.email)?.status;
    };
    await logIn(eve);
    await isInside();
    const invitation = page.getByRole('region', { name: 'Invitation to Protein folding' });
    await invitation.waitFor();
    expect(await statusOfEve()).toBe('invited');
    await invitation.getByRole('button', { name: 'Accept the invitation' }).click();
    await invitation.waitFor({ state: 'detached' });
    expect(await statusOfEve()).toBe('active');
  });

  it('goes on when the provider has replaced its keys: at worst one log-in is refused, on a page that says so', async () => {
    await logIn();
    await isInside();
    await provider.rotate();
    await context.clearCookies();
    await logIn();
    const refused = page.getByRole('heading', { name: 'You are not logged in' });
    await refused.or(page.locator('nav[aria-label=Main]')).waitFor({ state: 'attached' });
    if (await refused.isVisible()) {
      await page.getByRole('link', { name: 'Log in another way' }).click();
      await choose();
    }
    await isInside();
  });

  it('tells on a page that the provider is slow, has a fault or answers nonsense, and works again afterwards', async () => {
    await page.goto('/sign-in');
    for (const trouble of ['hang', { status: 500, body: '{}' }, { status: 200, body: '<html>' }] as const) {
      provider.misbehave = (path) => (path === '/token' ? trouble : undefined);
      await expectRefusal(503, /^Corp cannot be reached/, logIn);
      provider.misbehave = () => undefined;
      await context.clearCookies();
    }
    await logIn();
    await isInside();
  });

  it('takes an answer in the browser that asked, and once', async () => {
    let answer = '';
    page.on('request', (request) => {
      if (request.url().startsWith(`${home}/api/user/sso/corp/callback`)) answer = request.url();
    });
    await logIn();
    await isInside();
    expect(answer).toContain('code=');
    const first = context;
    context = await browser.newContext({ baseURL: home });
    context.setDefaultTimeout(60_000 * timeoutFactor);
    page = await context.newPage();
    await expectRefusal(401, /not started in this browser/, () => page.goto(answer));
    // The one who began it uses it a second time.
    page = await first.newPage();
    await page.goto(answer);
    await page.getByRole('heading', { name: 'You are not logged in' }).waitFor();
    await page.goto('/');
    await isInside();
  });

  it('tells on a page that the person did not consent, and that the provider is down', async () => {
    await page.goto('/sign-in');
    await choose();
    const cancel = page.getByRole('link', { name: 'Cancel' });
    await comes(cancel);
    await expectRefusal(401, /^Corp did not log you in/, () => cancel.click());
    await page.goto('/sign-in');
    await expectRefusal(503, /^Away cannot be reached/, () => choose('Away'));
  });
});
