import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Browser, Page } from 'playwright-core';
import { Person, chromiumLacking, launchChromium, pageUrl, sleep } from './chromium.js';
import { adminKey, call, createTeam, freshEmail, succeed, type MemberView } from './client.js';

const password = 'correct horse battery staple';

describeWhere(chromiumLacking, 'in a browser', () => {
  let browser: Browser;
  let person: Person;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    person = await Person.arrive(browser);
  });
  afterEach(async () => {
    expect(person.breaches).toEqual([]);
    await person.context.close();
  });

  const message = (page: Page): Promise<string | null> => page.textContent('#message');
  const isIn = (page: Page) => page.locator('#in').waitFor({ state: 'visible' });
  const isOut = (page: Page, words: string) => page.locator('#message', { hasText: words }).waitFor();

  /** Opens a one-time link as its person does, sets the password, and logs in. */
  async function enterBy(url: string, email: string): Promise<Page> {
    const page = await person.context.newPage();
    await page.goto(url);
    expect(page.url()).toBe(`${pageUrl}/link`);
    await page.fill('#password', password);
    await page.click('button');
    await page.locator('#log-in a').click();
    await page.fill('#email', email);
    await page.fill('#password', password);
    await page.click('#log-in button');
    await isIn(page);
    return page;
  }

  /** A user of a team of their own, logged in, and the tab. */
  async function loggedIn(): Promise<{ tab: Page; member: MemberView }> {
    const { team } = await createTeam('Browsers');
    const [member] = team.members as [MemberView];
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email: member.email } });
    return { tab: await enterBy(url, member.email), member };
  }

  it('an invited person sets a password, logs in, adds a passkey, and logs in with it', async () => {
    const { team, keys } = await createTeam('Passkeys');
    const email = freshEmail('invited');
    const { invitation } = await succeed<{ invitation: { url: string } }>('POST', `/team/${team.id}/members`, {
      key: keys.team_owner ?? '',
      body: { email, name: 'Ada', role: 'member' },
    });
    const tab = await enterBy(invitation.url, email);
    const device = await person.context.newCDPSession(tab);
    await device.send('WebAuthn.enable');
    await device.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await tab.click('#add-passkey');
    await isOut(tab, 'The passkey was added.');
    await tab.click('#log-out');
    await isOut(tab, 'You are logged out.');
    const mark = person.calls.length;
    await tab.click('#passkey');
    await isIn(tab);
    expect(await tab.textContent('#who')).toContain(email);
    expect(person.since(mark)).toEqual(['POST /user/login/passkey/begin 200', 'POST /user/login/passkey/finish 200']);
  });

  it('a log-out in one of three tabs ends all of them, also one that sleeps, without a call of theirs', async () => {
    const { tab } = await loggedIn();
    const [second, sleeping] = await Promise.all([person.open('/login'), person.open('/login')]);
    await Promise.all([isIn(second), isIn(sleeping)]);
    const wake = await sleep(sleeping);
    const mark = person.calls.length;
    await tab.click('#log-out');
    await isOut(tab, 'You are logged out.');
    await second.locator('#message', { hasText: 'You are logged out.' }).waitFor({ timeout: 1_000 });
    await wake();
    await isOut(sleeping, 'You are logged out.');
    await sleeping.click('#check', { force: true }).catch(() => undefined);
    expect(person.since(mark)).toEqual(['POST /user/logout 204']);
    const fresh = await person.open('/login');
    await fresh.locator('#out').waitFor({ state: 'visible' });
  });

  it('a session that was ended elsewhere shows by one 401, one message, and no call after it', async () => {
    const { tab, member } = await loggedIn();
    const other = await person.open('/login');
    await isIn(other);
    const wake = await sleep(other);
    expect((await call('DELETE', `/user/sessions?user_id=${member.user_id}`, { key: adminKey })).status).toBe(204);
    const mark = person.calls.length;
    await tab.click('#check');
    await isOut(tab, 'Your session has ended. Log in again.');
    await wake();
    await other.click('#check');
    await isOut(other, 'Your session has ended. Log in again.');
    expect(person.since(mark)).toEqual(['GET /user/profile 401', 'GET /user/profile 401']);
  });

  it('many tabs that open at once share one session, and a tab that sleeps with the lock keeps nobody out', async () => {
    const { tab } = await loggedIn();
    const mark = person.calls.length;
    const tabs = await Promise.all(Array.from({ length: 5 }, () => person.open('/login')));
    await Promise.all(tabs.map(isIn));
    const holder = tabs[0] as Page;
    await holder.evaluate(`void navigator.locks.request('atoll-refresh', () => new Promise(() => undefined))`);
    const wake = await sleep(holder);
    const late = await person.open('/login');
    await isIn(late);
    await wake();
    await late.click('#check');
    await isOut(late, 'The server knows you: 200.');
    expect(await message(tab)).toBe('');
    expect(person.since(mark).filter((line) => !line.endsWith(' 200'))).toEqual([]);
  });

  it('the cookie is out of reach of scripts, and a page of another origin logs nobody in', async () => {
    const { tab } = await loggedIn();
    expect(await tab.evaluate('document.cookie')).toBe('');
    const [cookie] = (await person.context.cookies()).filter(({ name }) => name === 'atoll-session');
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
    const foreign = await person.context.newPage();
    await foreign.route('http://elsewhere.example.com/', (route) => route.fulfill({ contentType: 'text/html', body: '<p>elsewhere' }));
    await foreign.goto('http://elsewhere.example.com/');
    for (const path of ['login', 'refresh', 'logout']) {
      await foreign.evaluate(
        `fetch('${pageUrl}/api/user/${path}', { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => 0)`,
      );
    }
    await tab.click('#check');
    await isOut(tab, 'The server knows you: 200.');
  });
});
