import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page } from 'playwright-core';
import { plainUrl } from '../chromium.js';
import { adminKey, createTeam, freshEmail, platformUrl, succeed, until, userKeyOf } from '../client.js';
import { createTenant } from '../gpu-inventory.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  holdCalls,
  logInWithKey,
  openBrowser,
  openTab,
  picture,
  violations,
} from './browser.js';

describeWhere(browserLack(), 'a form in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('begins anew each time that it is opened: what was cancelled is gone, and a second creation is another one', async () => {
    const tenant = await createTenant('Form users', ['team_owner']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, tenant.keys.team_owner ?? '', `/teams/${tenant.teamId}/settings`);
    const workspaces = page.getByRole('region', { name: 'Workspaces' });
    for (const name of ['training', 'serving']) {
      await workspaces.getByRole('button', { name: 'Create' }).click();
      expect(await dialog.getByLabel('Name').inputValue()).toBe('');
      await dialog.getByLabel('Name').fill(name);
      await dialog.getByRole('button', { name: 'Save' }).click();
      await workspaces.getByText(name, { exact: true }).waitFor();
    }
    // What had the focus goes with its row: the keyboard goes on in the content of the page.
    await workspaces
      .getByRole('listitem')
      .filter({ hasText: 'serving' })
      .getByRole('button', { name: 'Delete' })
      .click();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await workspaces.getByText('serving', { exact: true }).waitFor({ state: 'detached' });
    await until(
      () => page.evaluate('document.activeElement.tagName'),
      (name) => name === 'MAIN',
    );
    await page.getByRole('region', { name: 'Team', exact: true }).getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Name').fill('Never saved');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    const { name } = await succeed<{ name: string }>('GET', `/team/${tenant.teamId}`, { key: adminKey });
    expect(await dialog.getByLabel('Name').inputValue()).toBe(name);
    await page.keyboard.press('Escape');

    const about = page.getByRole('region', { name: 'Team', exact: true });
    await about.getByText('Also by password alone').waitFor();
    await about.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByText('Require a second factor').click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await about.getByText('With a second factor').waitFor();
    expect(await succeed('GET', `/team/${tenant.teamId}`, { key: adminKey })).toMatchObject({
      require_second_factor: true,
    });

    await page.getByRole('button', { name: 'Delete the team' }).click();
    await dialog.getByLabel(/^Type /).fill('Another name');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByRole('alert').getByText('The name does not match.').waitFor();
    expect(await dialog.getByText('No connection').count()).toBe(0);
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    await picture(page, 'story-form-refused');
    await page.keyboard.press('Escape');

    await goTo(page, `/teams/${tenant.teamId}/pods`);
    await page.getByRole('button', { name: 'Create a pod' }).click();
    await dialog.getByText('The team has no subscriptions').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes any name as a text, and refuses one of 10,000 characters beside its field, at a desk and on a telephone', async () => {
    const tenant = await createTenant('Name users', ['team_owner']);
    const tab = await openTab(platformUrl, { viewport: { width: 360, height: 740 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const fits = async () => Number(await page.evaluate('document.documentElement.scrollWidth')) <= 360;
    await logInWithKey(page, tenant.keys.team_owner ?? '', `/teams/${tenant.teamId}/settings`);
    const workspaces = page.getByRole('region', { name: 'Workspaces' });
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Overview' }).focus();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Overview' }).waitFor({ state: 'hidden' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Menu');
    const strange = '<img src=x onerror=alert(1)>مرحبا בעולם';
    await workspaces.getByRole('button', { name: 'Create' }).click();
    await dialog.getByLabel('Name').fill(strange);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await workspaces.getByText(strange, { exact: true }).waitFor();
    await workspaces.getByRole('button', { name: 'Create' }).click();
    await dialog.getByLabel('Name').fill('x'.repeat(10_000));
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').waitFor();
    expect(await dialog.getByLabel('Name').getAttribute('aria-invalid')).toBe('true');
    expect(await fits()).toBe(true);
    await picture(page, 'story-long-name-360');
    await page.keyboard.press('Escape');
    const long = 'x'.repeat(100);
    await page.getByRole('region', { name: 'Team', exact: true }).getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Description').fill(long);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText(long, { exact: true }).waitFor();
    expect(await fits()).toBe(true);
    const member = { email: freshEmail('long'), name: long, role: 'viewer' };
    await succeed('POST', `/team/${tenant.teamId}/members`, { key: adminKey, body: member });
    await goTo(page, `/teams/${tenant.teamId}/members`);
    await page.getByRole('row').filter({ hasText: member.email }).getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    // The button beside a key that is shown once is on the screen.
    const { x, width } = (await dialog.getByRole('button', { name: /Copy/ }).boundingBox()) ?? { x: NaN, width: 0 };
    expect(x + width).toBeLessThan(360);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.setViewportSize({ width: 1440, height: 900 });
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows what it made once, in its own place, and forgets it when it is closed', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, adminKey, '/operator/teams');
    for (const round of ['one', 'two']) {
      await page.getByRole('button', { name: 'Create a team' }).click();
      await dialog.getByLabel('Name', { exact: true }).fill(`Form team ${round}`);
      await dialog.getByLabel('E-mail of its owner').fill(`form-${round}-${Date.now()}@example.com`);
      await dialog.getByLabel('Name of its owner').fill('Owner');
      // Two clicks make one team: the second call would be a fault of the tab.
      await dialog.getByRole('button', { name: 'Create', exact: true }).dblclick();
      await dialog.getByText(/^atl_/).waitFor();
      // Neither a click beside it, such as on what says that it is done, nor Escape takes away what is shown once.
      await page.mouse.click(5, 5);
      await page.keyboard.press('Escape');
      await dialog.getByText(/^atl_/).waitFor();
      await dialog.getByRole('button', { name: 'Done' }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(await page.getByText(/^atl_\w{32}/).count()).toBe(0);
    }
    const { team } = await createTeam('Forgetful');
    await page.getByRole('button', { name: 'Link to log in' }).click();
    await dialog.getByLabel('E-mail').fill(team.members[0]?.email ?? '');
    await dialog.getByRole('button', { name: 'Make the link' }).click();
    const url = (await dialog.locator('.secret code').textContent()) ?? '';
    await dialog.getByRole('button', { name: 'Done' }).click();
    const body = { token: new URL(url).hash.slice(1), password: 'correct horse battery staple' };
    expect(await succeed('POST', '/user/link', { body })).toEqual({ email: team.members[0]?.email });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is sent on plain http at a host other than localhost, where browsers have no crypto.randomUUID', async () => {
    const { team, keys } = await createTeam('Plain');
    const tab = await openTab(plainUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/settings`);
    expect(await page.evaluate('typeof crypto.randomUUID')).toBe('undefined');
    const workspaces = page.getByRole('region', { name: 'Workspaces' });
    await workspaces.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('training');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await workspaces.getByText('training', { exact: true }).waitFor();
    // A browser says on the console what else it takes from such a page.
    expect(tab.faults.filter((fault) => !fault.includes('Cross-Origin-Opener-Policy'))).toEqual([]);
    await tab.close();
  });

  it('asks for the name of a team as it is, and after its deletion leads to what is left', async () => {
    const name = 'Two  Spaces';
    const { team } = await createTeam(name);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const key = await userKeyOf(team.members[0]?.email ?? '');
    await logInWithKey(page, key, `/teams/${team.id}/settings`);
    await page.getByRole('button', { name: 'Delete the team' }).click();
    // What is drawn, not what is in the document: a reader types what they see.
    const asked = await dialog.locator('label', { hasText: 'Type' }).innerText();
    expect(asked).toBe(`Type “${name}” to delete it`);
    await dialog.getByLabel(/^Type /).fill(name);
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('You are in no team yet').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('with which somebody leaves a team leads away from it, and to the next one that they create', async () => {
    const { team, ids } = await createTeam('Leavers', ['team_owner', 'viewer']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const { email = '' } = team.members.find(({ user_id }) => user_id === ids.viewer) ?? {};
    await logInWithKey(page, await userKeyOf(email), `/teams/${team.id}/members`);
    const row = page.getByRole('region', { name: 'Members' }).getByRole('row').filter({ hasText: email });
    await row.getByRole('button', { name: 'Leave' }).click();
    // It leads to no team before it is known which are left.
    const profile = await holdCalls(page, '**/api/user/profile');
    await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await page.waitForURL(`${platformUrl}/`);
    await page.locator('main .skeleton').waitFor();
    profile.letGo();
    await page.getByText('You are in no team yet').waitFor();
    expect(await page.getByRole('link', { name: 'Members and keys' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Create a team' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Founders');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await page.waitForURL(/\/teams\//);
    expect(page.url()).not.toContain(team.id);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('offers an admin nothing that only an owner may do to an owner, and a member what is their own', async () => {
    const { team, ids } = await createTeam('Ranks', ['team_owner', 'team_admin', 'viewer']);
    const emailOf = (id?: string) => team.members.find(({ user_id }) => user_id === id)?.email ?? '';
    const offered = async (page: Page, email: string) => {
      const row = page.getByRole('region', { name: 'Members' }).getByRole('row').filter({ hasText: email });
      await row.waitFor();
      return row.getByRole('button').allInnerTexts();
    };
    const seenBy = async (id?: string) => {
      const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
      await logInWithKey(tab.page, await userKeyOf(emailOf(id)), `/teams/${team.id}/members`);
      const seen = [];
      for (const whom of [ids.team_owner, ids.team_admin, ids.viewer])
        seen.push(await offered(tab.page, emailOf(whom)));
      expect(tab.faults).toEqual([]);
      await tab.close();
      return seen;
    };
    const others = ['Rotate', 'Revoke', 'Role', 'Remove'];
    const own = ['Rotate', 'Revoke', 'Role', 'Leave'];
    expect(await seenBy(ids.team_owner)).toEqual([own, others, others]);
    expect(await seenBy(ids.team_admin)).toEqual([[], own, others]);
    expect(await seenBy(ids.viewer)).toEqual([[], [], ['Rotate', 'Revoke', 'Leave']]);
  });

  it('is closed by Back, but not under the palette, and its page stays; the next Back leaves', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/operator/policies');
    // Of a step that the router makes, Back is known for what it is.
    await page.getByRole('link', { name: 'Teams', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const opened = page.getByRole('button', { name: 'Create a team' });
    for (const open of [() => opened.click(), () => page.keyboard.press('Control+k')]) {
      await open();
      await dialog.waitFor();
      await page.goBack();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('heading', { name: 'Teams', level: 1 }).waitFor();
      await page.waitForURL((url) => url.pathname === '/operator/teams');
    }
    // Of two open dialogs, it closes the upper one, as Escape does.
    await opened.click();
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('Left');
    const palette = page.getByRole('dialog', { name: 'Go to a page' });
    for (const close of [() => page.goBack(), () => page.keyboard.press('Escape')]) {
      await page.keyboard.press('Control+k');
      await palette.waitFor();
      await close();
      await palette.waitFor({ state: 'detached' });
      expect(await name.inputValue()).toBe('Left');
    }
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.goBack();
    await page.getByRole('heading', { name: 'Image policies', level: 1 }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes a date as it is typed, digit by digit, and changes nothing else', async () => {
    const tenant = await createTenant('Date typists', ['team_owner']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, tenant.keys.team_owner ?? '', `/teams/${tenant.teamId}/billing`);
    const type = async (label: string, digits: string) => {
      await page.getByLabel(label).pressSequentially(digits, { delay: 30 });
      await page.keyboard.press('Enter');
    };
    await type('First day', '01152025');
    await page.waitForURL(/from=2025-01-15/);
    await type('Last day', '02202025');
    await page.waitForURL(/to=2025-02-20/);
    expect(page.url()).toContain('from=2025-01-15');
    expect(await page.getByLabel('First day').inputValue()).toBe('2025-01-15');
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
