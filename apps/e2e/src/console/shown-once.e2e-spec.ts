import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page } from 'playwright-core';
import { adminKey, call, createTeam, fresh, freshEmail, platformUrl, succeed, userKeyOf } from '../client.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  holdAnswers,
  logInWithKey,
  logInWithPassword,
  loseAnswer,
  openBrowser,
  openTab,
  showAgain,
} from './browser.js';

/** Whoever waits for what is shown once, and does not wait: Escape, a click beside the dialog. */
async function tryToClose(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Working…' }).waitFor();
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  expect(await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
}

/** Whoever goes on before they have kept what is shown: to the page before, and to one that they look for. */
async function tryToLeave(page: Page): Promise<void> {
  const said = page.getByText('Close the dialog first: what it shows is shown only once.');
  const palette = page.getByRole('dialog', { name: 'Go to a page' });
  await Promise.all([said.first().waitFor(), page.goBack()]);
  await page.keyboard.press('Control+k');
  await palette.waitFor();
  await page.goBack();
  await palette.waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Page or team' }).fill('Team settings');
  await page.getByRole('option', { name: 'Team settings' }).click();
  await palette.waitFor({ state: 'detached' });
  await page.waitForURL(/members$/);
}

describeWhere(browserLack(), 'what the console shows once', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('is the new key of a member, who goes on with it where the old one ended before its answer came', async () => {
    const { team, keys, ids } = await createTeam('Rotators');
    const old = keys.team_owner ?? '';
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, old, `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    const answer = await holdAnswers(page, `**/members/${ids.team_owner}/api-key`);
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    await answer.held;
    await tryToClose(page);
    const refused = page.waitForResponse((response) => response.status() === 401);
    await showAgain(page);
    await refused;
    answer.letGo();
    const key = (await dialog.locator('.secret code').textContent()) ?? '';
    expect((await call('GET', '/user/profile', { key: old })).status).toBe(401);
    expect((await call('GET', '/user/profile', { key })).status).toBe(200);
    const read = page.waitForResponse((response) => response.url().includes('/members?') && response.ok());
    await showAgain(page);
    await read;
    expect(await dialog.locator('.secret code').textContent()).toBe(key);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('region', { name: 'Members' }).getByText(key.slice(0, 8)).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is a key of one’s own, with which a page goes on that was opened by the one before', async () => {
    const { team } = await createTeam('Key makers');
    const old = await userKeyOf(team.members[0]?.email ?? '');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, old, '/profile');
    await page.getByRole('button', { name: 'Make a key' }).click();
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    const key = (await dialog.locator('.secret code').textContent()) ?? '';
    expect((await call('GET', '/user/profile', { key: old })).status).toBe(401);
    const read = page.waitForResponse((response) => response.url().endsWith('/user/profile'));
    await showAgain(page);
    expect((await read).status()).toBe(200);
    expect(await dialog.locator('.secret code').textContent()).toBe(key);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    // The key to one team is another one: the page does not go on with that.
    await goTo(page, `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    await dialog.getByText(/^atl_/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    const again = page.waitForResponse('**/api/user/profile');
    await showAgain(page);
    expect(await (await again).json()).toMatchObject({ second_factor: { is_set: false } });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is the key of a new member, however impatient they are who add one', async () => {
    const { team, keys } = await createTeam('Impatient');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/pods`);
    await page.getByRole('link', { name: 'Members and keys' }).click();
    await page.getByRole('button', { name: 'Add a member' }).click();
    await dialog.getByLabel('E-mail').fill(freshEmail('added'));
    await dialog.getByLabel('Name').fill('Added');
    const answer = await holdAnswers(page, '**/members');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await answer.held;
    await tryToClose(page);
    answer.letGo();
    await dialog.getByText(/^atl_/).waitFor();
    await tryToLeave(page);
    await dialog.getByText(/^atl_/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('region', { name: 'Members' }).getByRole('row').filter({ hasText: 'Added' }).waitFor();
    await page.goBack();
    await page.waitForURL(/pods$/);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is copied, which is said where the pointer and a screen reader reach it', async () => {
    const { team, keys } = await createTeam('Copiers');
    const permissions = ['clipboard-write'];
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 }, permissions });
    const { page } = tab;
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('dialog').getByText(/^atl_/).waitFor();
    // What is said stays.
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.getByRole('button', { name: 'Copy' }).click();
    const said = page.getByText('The key of team_owner was copied.');
    await said.waitFor();
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send('Accessibility.getFullAXTree');
    expect(nodes.map(({ name }) => name?.value as unknown)).toContain('The key of team_owner was copied.');
    await page.locator('.toast', { has: said }).getByRole('button', { name: 'Dismiss' }).click();
    await said.waitFor({ state: 'detached' });
    await page.getByRole('dialog').getByText(/^atl_/).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  /** Presses the button whose answer is lost, and once more: the platform repeats its answer, without secrets. */
  async function sendTwice(page: Page, button: string, url: string): Promise<void> {
    const press = () => page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click();
    await loseAnswer(page, url);
    await press();
    await page.getByRole('dialog').getByText('No connection').waitFor();
    await press();
  }

  it('is no masked key and no mail that nobody sent: where its answer was lost, the repeat says so, and what to do', async () => {
    const { team, keys, ids } = await createTeam('Lost answers');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const told = async (...texts: string[]) => {
      for (const text of texts) await dialog.getByText(text).waitFor();
      expect(await dialog.getByText(/shown this once|by mail|…/).count()).toBe(0);
      expect(await dialog.getByRole('button', { name: 'Copy' }).count()).toBe(0);
      await dialog.getByRole('button', { name: 'Done' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Add a member' }).click();
    await dialog.getByLabel('E-mail').fill(freshEmail('lost'));
    await dialog.getByLabel('Name').fill('Lost');
    await sendTwice(page, 'Add', '**/members');
    await told(
      'The key of Lost was made',
      'Rotate the key,',
      'The link of the invitation was made',
      'Resend the invitation,',
    );

    const row = page.getByRole('region', { name: 'Members' }).getByRole('row');
    await row.filter({ hasText: 'Lost' }).getByRole('button', { name: 'Rotate' }).click();
    await sendTwice(page, 'Make the key', '**/api-key');
    await told('The key of Lost was made', 'Rotate the key,');

    // The page goes on with the key that it has: nobody knows the one that was made.
    await row.filter({ hasText: 'team_owner' }).getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'The old key ends' }).click();
    await page.getByRole('option', { name: 'after an hour' }).click();
    await sendTwice(page, 'Make the key', `**/${ids.team_owner}/api-key`);
    await told('The key of team_owner was made');
    const read = page.waitForResponse('**/api/user/profile');
    await showAgain(page);
    expect((await read).status()).toBe(200);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is neither a masked key of one’s own nor of the owner of a team, where the answer was lost', async () => {
    const { team } = await createTeam('Lost own answers');
    const email = team.members[0]?.email ?? '';
    await userKeyOf(email);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithPassword(page, email, 'correct horse battery staple', '/profile');
    await page.getByRole('button', { name: 'Make a key' }).click();
    await sendTwice(page, 'Make the key', '**/api/user/api-key');
    await dialog.getByText('Your key was made').waitFor();
    expect(await dialog.getByRole('button', { name: 'Copy' }).count()).toBe(0);
    await dialog.getByRole('button', { name: 'Done' }).click();
    expect(tab.faults).toEqual([]);
    await tab.close();

    const desk = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const form = desk.page.getByRole('dialog');
    // A platform that sends mail has sent the link, whatever became of the answer.
    await desk.page.route('**/api/user/sso', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), sends_mail: true } });
    });
    await logInWithKey(desk.page, adminKey, '/operator/teams');
    await desk.page.getByRole('button', { name: 'Create a team' }).click();
    await form.getByLabel('Name', { exact: true }).fill(fresh('Lost'));
    await form.getByLabel('E-mail of its owner').fill(freshEmail('owner'));
    await form.getByLabel('Name of its owner').fill('Ada');
    await sendTwice(desk.page, 'Create', '**/api/team');
    await form.getByText('The key of Ada was made').waitFor();
    await form.getByText('The link is on its way by mail.').waitFor();
    expect(await form.getByRole('button', { name: 'Copy' }).count()).toBe(0);
    expect(desk.faults).toEqual([]);
    await desk.close();
  });

  it('was done where its answer was lost and the form is sent with another value: that is said, and read again', async () => {
    const { team, keys } = await createTeam('Changed forms');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Add a member' }).click();
    await dialog.getByLabel('E-mail').fill(freshEmail('changed'));
    await dialog.getByLabel('Name').fill('Before');
    await loseAnswer(page, '**/members');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('No connection').waitFor();
    await dialog.getByLabel('Name').fill('After');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('What you sent first was done.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('region', { name: 'Members' }).getByRole('row').filter({ hasText: 'Before' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('keeps nobody in a dialog whose answer has not come for 30 s', async () => {
    const { team, keys, ids } = await createTeam('Waiting', ['team_owner', 'viewer']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/members`);
    const row = page.getByRole('region', { name: 'Members' }).getByRole('row');
    await page.clock.install();
    const answer = await holdAnswers(page, `**/members/${ids.viewer}/api-key`);
    await row.filter({ hasText: 'viewer' }).getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    await answer.held;
    await tryToClose(page);
    await page.clock.fastForward(30_000);
    await dialog.getByRole('button', { name: 'Cancel', disabled: false }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    const answered = page.waitForResponse(`**/members/${ids.viewer}/api-key`);
    answer.letGo();
    await answered;
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is gone with a form that was left: its late answer closes no other form, and says what was done', async () => {
    const { team, keys } = await createTeam('Late answers');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/settings`);
    const workspaces = page.getByRole('region', { name: 'Workspaces' });
    await workspaces.getByRole('button', { name: 'Create' }).click();
    await dialog.getByLabel('Name').fill('first');
    const answer = await holdAnswers(page, '**/api/workspace');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await answer.held;
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await workspaces.getByRole('button', { name: 'Create' }).click();
    await dialog.getByLabel('Name').fill('second');
    const said = page.getByText('The workspace was saved.').waitFor();
    answer.letGo();
    await said;
    expect(await dialog.getByLabel('Name').inputValue()).toBe('second');
    await dialog.getByRole('button', { name: 'Save' }).click();
    for (const name of ['first', 'second']) await workspaces.getByText(name, { exact: true }).waitFor();
    const { workspaces: made } = await succeed<{ workspaces: object[] }>('GET', `/team/${team.id}`, {
      key: keys.team_owner,
    });
    expect(made).toHaveLength(3);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
