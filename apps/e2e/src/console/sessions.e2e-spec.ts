import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { TOTP } from 'otpauth';
import { adminKey, call, createTeam, platformUrl, query, succeed, until } from '../client.js';
import {
  browserLack,
  closeBrowser,
  holdAnswers,
  logInWithPassword,
  openBrowser,
  openTab,
  picture,
  showAgain,
  violations,
  type Tab,
} from './browser.js';

const password = 'correct horse battery staple';

describeWhere(browserLack(), 'a session in the console', () => {
  let email: string;
  beforeAll(async () => {
    await openBrowser();
    const { team } = await createTeam('Sessions', ['team_owner']);
    email = team.members[0]?.email ?? '';
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email } });
    await succeed('POST', '/user/link', { body: { token: new URL(url).hash.slice(1), password } });
  });
  afterAll(closeBrowser);

  const logIn = ({ page }: Tab) => logInWithPassword(page, email, password);

  it('begins by password, on a page that everybody can use', async () => {
    const tab = await openTab(platformUrl);
    await tab.page.goto('/');
    await tab.page.getByLabel('E-mail').waitFor();
    expect(await violations(tab.page)).toEqual([]);
    await picture(tab.page, 'story-login');
    await tab.page.getByLabel('E-mail').fill('ada@localhost');
    // This platform has no mail server, and promises no mail.
    await tab.page.getByText('Ask the operator for a link').waitFor();
    expect(await tab.page.getByRole('button', { name: 'Send me a link for a new password' }).count()).toBe(0);
    await tab.page.getByLabel('Password', { exact: true }).fill('not the password at all');
    await tab.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await tab.page.getByText('email must be an e-mail address such as ada@example.com', { exact: true }).waitFor();
    expect(await tab.page.getByLabel('E-mail').getAttribute('aria-invalid')).toBe('true');
    await tab.page.getByLabel('E-mail').fill(email);
    await tab.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await tab.page.getByText('email must be', { exact: false }).waitFor({ state: 'detached' });
    await tab.page.getByRole('alert').waitFor();
    expect(await violations(tab.page)).toEqual([]);
    await tab.page.route('**/api/user/login', (route) => route.abort());
    await tab.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await tab.page.getByText('No connection').waitFor();
    await tab.page.unroute('**/api/user/login');
    await logIn(tab);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('goes on after the page is loaded again, with nothing of it where a script could read it', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    await tab.page.goto('/profile');
    await tab.page.getByText('(this one)').waitFor();
    const kept = await tab.page.evaluate(
      'JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie',
    );
    expect(String(kept)).not.toMatch(/eyJ|atl_|[\w-]{43}/);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('goes on once the platform says whether there is one, which the page waits for in view, and asks again by itself', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    const held = Promise.withResolvers<void>();
    const refusal = { code: 'unavailable', detail: 'The service is not available.', request_id: 'req-outside-test' };
    await page.route('**/api/user/refresh', async (route) => {
      await held.promise;
      await route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify(refusal) });
    });
    await page.goto('/profile');
    await page.locator('.skeleton').waitFor();
    expect(await page.getByRole('status').textContent()).toBe('Looking for your session');
    held.resolve();
    const note = page.getByRole('alert');
    await note.getByText('The service is not available.').waitFor();
    await note.getByText('req-outside-test').waitFor();
    expect(await violations(page)).toEqual([]);
    const asked = page.waitForRequest('**/api/user/refresh');
    await note.getByRole('button', { name: 'Try again' }).click();
    await asked;
    await note.waitFor();
    await page.unroute('**/api/user/refresh');
    await page.getByText('(this one)').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('ends in all tabs by one log-out, and by one call', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const context = tab.page.context();
    const others = [await context.newPage(), await context.newPage()];
    const calls: string[] = [];
    context.on('request', (request) => calls.push(`${request.method()} ${new URL(request.url()).pathname}`));
    for (const page of others) {
      await page.goto('/profile');
      await page.getByText('(this one)').waitFor();
    }
    await tab.page.getByRole('button', { name: 'Log out' }).click();
    for (const page of [tab.page, ...others]) {
      await page.getByText('You are logged out.').waitFor();
      // Whoever logs in there next is not led to where this user was.
      expect(new URL(page.url()).search).toBe('');
    }
    expect(calls.filter((made) => made.includes('logout'))).toEqual(['POST /api/user/logout']);
    expect((await call('POST', '/user/refresh')).status).toBe(401);
    await others[0]?.goto('/profile');
    await others[0]?.getByRole('heading', { name: 'Log in to Atoll' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('ends in its tab by a log-out that nobody answers, which says so and that the session may go on', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    const held = Promise.withResolvers<void>();
    await page.route('**/api/user/logout', async (route) => {
      await held.promise;
      await route.abort();
    });
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Logging out…' }).waitFor();
    held.resolve();
    await page.getByText('You are logged out.').waitFor();
    await page.getByText('the session in this browser may go on').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('that was ended elsewhere ends here with one 401, and goes on where it was after a new log-in', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    await page.goto('/profile');
    await page.getByText('(this one)').waitFor();
    const link = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email } });
    const body = { token: new URL(link.url).hash.slice(1), password };
    await succeed('POST', '/user/link', { body });
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('dialog').getByLabel('Current password').fill(password);
    await page.getByRole('dialog').getByLabel('New password').fill(`${password} 2`);
    await page.getByRole('dialog').getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByText('Your session has ended.').waitFor();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    await tab.close();
  });

  it('that ends under an open form keeps what was typed for its user, who finds it in the same form until a log-out, but no password', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const enter = async () => {
      await page.getByLabel('E-mail').fill(email);
      await page.getByLabel('Password', { exact: true }).fill(password);
      await page.getByRole('button', { name: 'Log in', exact: true }).click();
    };
    const end = () =>
      query('DELETE FROM teams.session WHERE user_id = (SELECT id FROM teams."user" WHERE email = $1)', [email]);
    await page.goto('/profile');
    await page.getByText('(this one)').waitFor();
    const edit = page.getByRole('region', { name: 'You', exact: true }).getByRole('button', { name: 'Edit' });
    await edit.click();
    await dialog.getByLabel('Name').fill('Typed before');
    await end();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page
      .getByText('What you typed is there when you open the form again, unless you log in at a provider.')
      .waitFor();
    // What was not typed is as it is now.
    await query('UPDATE teams."user" SET timezone = $2 WHERE email = $1', [email, 'Asia/Kathmandu']);
    await enter();
    await edit.click();
    await dialog.getByText('This is what you had typed when your session ended.').waitFor();
    expect(await dialog.getByLabel('Name').inputValue()).toBe('Typed before');
    expect(await dialog.getByLabel('Zone').inputValue()).toBe('Asia/Kathmandu');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('region', { name: 'You', exact: true }).getByText('Typed before').waitFor();
    await edit.click();
    await dialog.getByLabel('Name').waitFor();
    expect(await dialog.getByText('when your session ended').count()).toBe(0);
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'Change the password' }).click();
    await dialog.getByLabel('Current password').fill(password);
    await dialog.getByLabel('New password').fill(`${password} 2`);
    await end();
    await dialog.getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByText('Your session has ended. Log in again to go on where you were.', { exact: true }).waitFor();
    await enter();
    await page.getByRole('button', { name: 'Change the password' }).click();
    await dialog.getByLabel('New password').waitFor();
    expect(await dialog.getByLabel('Current password').inputValue()).toBe('');
    expect(await dialog.getByLabel('New password').inputValue()).toBe('');
    await page.keyboard.press('Escape');

    await edit.click();
    await dialog.getByLabel('Name').fill('Never sent');
    await end();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await enter();
    await page.getByText('(this one)').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out.', { exact: true }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is neither ended nor lost where a proxy answers in the place of the platform, and goes on by itself', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    await page.route('**/api/**', (route) =>
      route.fulfill({
        status: 200,
        contentType: 'text/html',
        body: '<!doctype html><title>Log in to the proxy</title>',
      }),
    );
    const told = page.getByRole('alert').getByText('The platform did not answer').first();
    await page.getByRole('link', { name: 'SSH keys' }).click();
    await told.waitFor();
    await page.goto('/profile');
    await told.waitFor();
    await page.unroute('**/api/**');
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('that is too old for what it asks leads to a new log-in, and back to the same page', async () => {
    const tab = await openTab(platformUrl);
    await logIn(tab);
    const { page } = tab;
    await page.goto('/profile');
    await page.getByText('(this one)').waitFor();
    await query(
      `UPDATE teams.session SET created_at = created_at - interval '1 hour' WHERE user_id = (SELECT id FROM teams."user" WHERE email = $1)`,
      [email],
    );
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Log in again' }).click();
    await page.getByText('Log in again to go on where you were.').waitFor();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    await tab.close();
  });

  it('takes a code of an authenticator once one is set up, or a recovery code, until it is removed', async () => {
    const { team } = await createTeam('Second factors', ['team_owner']);
    const own = team.members[0]?.email ?? '';
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email: own } });
    await succeed('POST', '/user/link', { body: { token: new URL(url).hash.slice(1), password } });
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const enter = async () => {
      await page.getByLabel('E-mail').fill(own);
      await page.getByLabel('Password', { exact: true }).fill(password);
      await page.getByRole('button', { name: 'Log in', exact: true }).click();
    };
    await page.goto('/profile');
    await enter();
    const card = page.getByRole('region', { name: 'Second factor' });
    await card.getByText('not set up', { exact: true }).waitFor();
    for (const theme of ['Light', 'Dark']) {
      await page.getByRole('radio', { name: theme }).click();
      expect(await violations(page)).toEqual([]);
    }
    await picture(page, 'story-profile');
    await card.getByRole('button', { name: 'Set up' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Begin' }).click();
    const secret = (await dialog.locator('.secret code').textContent()) ?? '';
    await dialog.getByLabel('Code').fill('000000');
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Code').fill(new TOTP({ secret }).generate());
    const answer = await holdAnswers(page, '**/second-factor/confirm');
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await answer.held;
    await page.getByRole('button', { name: 'Working…' }).waitFor();
    // It is set up by now: whoever closed the dialog would never see the codes.
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 5);
    answer.letGo();
    const codes = dialog.locator('li code');
    await codes.first().waitFor();
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    const profile = page.waitForResponse('**/api/user/profile');
    await showAgain(page);
    await (await profile).finished();
    await card.getByText('set up', { exact: true }).waitFor();
    const [first = '', second = ''] = await codes.allTextContents();
    expect([first, second]).not.toContain('');
    await dialog.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(secret);
    await card.getByText('set up', { exact: true }).waitFor();
    await card.getByText('10 recovery codes are left').waitFor();
    // The button that opened the dialog is another one now.
    await until(
      () => page.evaluate('document.activeElement.tagName'),
      (name) => name === 'MAIN',
    );
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await picture(page, 'story-profile-360');
    await page.setViewportSize({ width: 1440, height: 900 });

    await page.getByRole('button', { name: 'Log out' }).click();
    await enter();
    await page.getByRole('button', { name: 'Start again' }).click();
    await enter();
    await page.getByLabel('Code').fill(first);
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('link', { name: 'SSH keys' }).waitFor();
    await page.goto('/profile');
    await card.getByText('9 recovery codes are left').waitFor();
    await card.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByLabel('Code').fill(second);
    // Waited for from before the click: it is gone after 6 s.
    await Promise.all([
      page.getByText('The second factor was removed.').waitFor(),
      dialog.getByRole('button', { name: 'Remove' }).click(),
    ]);
    await card.getByText('not set up', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await enter();
    await page.getByRole('link', { name: 'SSH keys' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
