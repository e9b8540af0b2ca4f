import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page } from 'playwright-core';
import { call, createTeam, freshEmail, platformUrl, succeed, userKeyOf } from '../client.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  holdAnswers,
  logInWithKey,
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
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/members`);
    await page.getByRole('button', { name: 'Add a member' }).click();
    await dialog.getByLabel('E-mail').fill(freshEmail('added'));
    await dialog.getByLabel('Name').fill('Added');
    const answer = await holdAnswers(page, '**/members');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await answer.held;
    await tryToClose(page);
    answer.letGo();
    await dialog.getByText(/^atl_/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('region', { name: 'Members' }).getByRole('row').filter({ hasText: 'Added' }).waitFor();
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
