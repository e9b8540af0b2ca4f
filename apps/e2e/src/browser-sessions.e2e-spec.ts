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

  const isIn = (page: Page) => page.getByText('(this one)').waitFor();
  /** So that no call of theirs is still under way. */
  const areAtRest = (...pages: Page[]) => Promise.all(pages.map((page) => page.waitForLoadState('networkidle')));
  const isOut = (page: Page, words: string) => page.getByText(words).waitFor();
  /** Makes a call, by going to another page of the console. */
  const check = (page: Page) => page.getByRole('link', { name: 'SSH keys' }).click();
  const isKnown = (page: Page) => page.getByText('You have no SSH key here').waitFor();
  const logOut = (page: Page) => page.getByRole('button', { name: 'Log out' }).click();

  /** Opens a one-time link as its person does, sets the password, and logs in. */
  async function enterBy(url: string, email: string): Promise<Page> {
    const page = await person.context.newPage();
    await page.goto(url);
    await page.getByLabel('Password').fill(password);
    expect(page.url()).toBe(`${pageUrl}/link`);
    await page.getByRole('button', { name: 'Set it' }).click();
    await page.getByRole('link', { name: 'Log in' }).click();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('link', { name: 'SSH keys' }).waitFor();
    await page.goto(`${pageUrl}/profile`);
    await isIn(page);
    return page;
  }

  /** A user of a team of their own, logged in, and the tab. */
  async function loggedIn(): Promise<{ tab: Page; member: MemberView }> {
    const { team } = await createTeam('Browsers');
    const [member] = team.members as [MemberView];
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', {
      key: adminKey,
      body: { email: member.email },
    });
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
    await tab.getByRole('button', { name: 'Add a passkey' }).click();
    await tab.getByRole('dialog').getByLabel('Name').fill('Laptop');
    const add = tab.getByRole('dialog').getByRole('button', { name: 'Add', exact: true });
    // Waited for from before the click: it is gone after 6 s.
    await Promise.all([isOut(tab, 'The passkey was added.'), add.click()]);
    await logOut(tab);
    await isOut(tab, 'You are logged out.');
    await tab.getByRole('button', { name: 'Log in with a passkey' }).click();
    await tab.getByRole('link', { name: 'SSH keys' }).waitFor();
    await tab.goto(`${pageUrl}/profile`);
    await isIn(tab);
    await tab.getByText(email).waitFor();
    await tab.getByText('last used').first().waitFor();
  });

  it('a log-out in one of three tabs ends all of them, also one that sleeps, without a call of theirs', async () => {
    const { tab } = await loggedIn();
    const [second, sleeping] = await Promise.all([person.open('/profile'), person.open('/profile')]);
    await Promise.all([isIn(second), isIn(sleeping)]);
    await areAtRest(tab, second, sleeping);
    const wake = await sleep(sleeping);
    const mark = person.calls.length;
    await logOut(tab);
    await isOut(tab, 'You are logged out.');
    await isOut(second, 'You are logged out.');
    await wake();
    await isOut(sleeping, 'You are logged out.');
    // The page of the log-in asks which providers there are.
    expect(person.since(mark).filter((made) => made !== 'GET /user/sso 200')).toEqual(['POST /user/logout 204']);
    const fresh = await person.open('/profile');
    await fresh.getByRole('heading', { name: 'Log in to Atoll' }).waitFor();
  });

  it('a session that was ended elsewhere shows by one 401, one message, and no call after it', async () => {
    const { tab, member } = await loggedIn();
    const other = await person.open('/profile');
    await isIn(other);
    await areAtRest(tab, other);
    const wake = await sleep(other);
    expect((await call('DELETE', `/user/sessions?user_id=${member.user_id}`, { key: adminKey })).status).toBe(204);
    const mark = person.calls.length;
    await check(tab);
    await isOut(tab, 'Your session has ended. Log in again');
    await wake();
    await check(other);
    await isOut(other, 'Your session has ended. Log in again');
    const made = person.since(mark).filter((each) => each !== 'GET /user/sso 200');
    expect(made).toEqual(['GET /user/ssh-key 401', 'GET /user/ssh-key 401']);
  });

  it('many tabs that open at once share one session, and a tab that sleeps with the lock keeps nobody out', async () => {
    const { tab } = await loggedIn();
    const mark = person.calls.length;
    const tabs = await Promise.all(Array.from({ length: 5 }, () => person.open('/profile')));
    await Promise.all(tabs.map(isIn));
    const holder = tabs[0] as Page;
    await holder.evaluate(`void navigator.locks.request('atoll-refresh', () => new Promise(() => undefined))`);
    const wake = await sleep(holder);
    const late = await person.open('/profile');
    await isIn(late);
    await wake();
    await check(late);
    await isKnown(late);
    await isIn(tab);
    expect(person.since(mark).filter((line) => !line.endsWith(' 200'))).toEqual([]);
  });

  it('the cookie is out of reach of scripts, and a page of another origin logs nobody in', async () => {
    const { tab } = await loggedIn();
    expect(await tab.evaluate('document.cookie')).toBe('');
    const [cookie] = (await person.context.cookies()).filter(({ name }) => name === 'atoll-session');
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
    const foreign = await person.context.newPage();
    await foreign.route('http://elsewhere.example.com/', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<p>elsewhere' }),
    );
    await foreign.goto('http://elsewhere.example.com/');
    for (const path of ['login', 'refresh', 'logout']) {
      await foreign.evaluate(
        `fetch('${pageUrl}/api/user/${path}', { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => 0)`,
      );
    }
    await check(tab);
    await isKnown(tab);
  });
});
