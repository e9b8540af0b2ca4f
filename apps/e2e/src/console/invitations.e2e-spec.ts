import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, createTeam, freshEmail, platformUrl, succeed, userKeyOf, type MemberView } from '../client.js';
import { browserLack, closeBrowser, goTo, logInWithKey, openBrowser, openTab, picture, violations } from './browser.js';

const password = 'correct horse battery staple';

describeWhere(browserLack(), 'an invitation in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('is listed, sent again and used by its last link alone, or revoked', async () => {
    const { team, keys } = await createTeam('Inviting');
    const owner = keys.team_owner ?? '';
    const [ada, bob] = [freshEmail('ada'), freshEmail('bob')];
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, owner, `/teams/${team.id}/members`);
    const links: string[] = [];
    for (const [email, name] of [
      [ada, 'Ada Invited'],
      [bob, 'Bob Invited'],
    ]) {
      await page.getByRole('button', { name: 'Add a member' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('E-mail').fill(email ?? '');
      await dialog.getByLabel('Name').fill(name ?? '');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      const [key = '', url = ''] = [
        await dialog.locator('.secret code').first().textContent(),
        await dialog.locator('.secret code').last().textContent(),
      ].map(String);
      expect(key).toMatch(/^atl_/);
      links.push(url);
      await dialog.getByRole('button', { name: 'Done' }).click();
    }
    const row = (name: string) =>
      page.getByRole('region', { name: 'Invitations' }).last().getByRole('row').filter({ hasText: name });
    await row('Ada Invited').getByRole('button', { name: 'Resend' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send a new link' }).click();
    const link = (await page.getByRole('dialog').locator('.secret code').textContent()) ?? '';
    expect(link).not.toBe(links[0]);
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    for (const theme of ['Light', 'Dark']) {
      await page.getByRole('radio', { name: theme }).click();
      expect(await violations(page)).toEqual([]);
    }
    await picture(page, 'story-invitations');
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await page.setViewportSize({ width: 1440, height: 900 });
    await row('Bob Invited').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row('Bob Invited').waitFor({ state: 'detached' });
    const { data } = await succeed<{ data: { email: string }[] }>('GET', `/team/${team.id}/invitations`, {
      key: owner,
    });
    expect(data.map(({ email }) => email)).toContain(ada);
    expect(data.map(({ email }) => email)).not.toContain(bob);

    const invited = await openTab(platformUrl);
    const open = (url: string) => invited.page.goto(url.replace(new URL(url).origin, platformUrl));
    const use = async (url: string) => {
      await open(url);
      const name = invited.page.getByLabel('Name, if you are new');
      await name.waitFor();
      expect(await name.evaluate('document.activeElement?.getAttribute("autocomplete")')).toBe('name');
      await name.fill('Ada');
      await invited.page.getByLabel('Password').fill('too short');
      await invited.page.getByRole('button', { name: 'Set it' }).click();
      await invited.page.getByText('It must have at least 12 characters.').waitFor();
      expect(await invited.page.getByRole('alert').count()).toBe(0);
      await invited.page.getByLabel('Password').fill(password);
      await invited.page.getByRole('button', { name: 'Set it' }).click();
    };
    // Before anybody has chosen a password for it.
    await open(links[1] ?? '');
    await invited.page.getByRole('heading', { name: 'This link is no longer valid' }).waitFor();
    expect(await violations(invited.page)).toEqual([]);
    await invited.page.getByRole('link', { name: 'Log in' }).waitFor();
    // The next link is opened in the same tab, where only what stands behind # changes.
    await use(link);
    await invited.page.getByText(`Log in as ${ada}.`).waitFor();
    expect(invited.page.url()).toBe(`${platformUrl}/link`);
    await picture(invited.page, 'story-link');
    await invited.page.getByRole('link', { name: 'Log in' }).click();
    expect(await invited.page.getByLabel('E-mail').inputValue()).toBe(ada);
    expect(await invited.page.evaluate('document.activeElement?.getAttribute("autocomplete")')).toBe(
      'current-password',
    );
    await invited.page.goto('/login');
    await invited.page.getByRole('heading', { name: 'Log in to Atoll' }).waitFor();
    expect([...tab.faults, ...invited.faults]).toEqual([]);
    await invited.close();
    await tab.close();
  });

  it('is accepted or declined by its person; beyond three of them the others are folded', async () => {
    const email = freshEmail('eve');
    const teams: { id: string; name: string }[] = [];
    for (const name of ['First', 'Second', 'Third', 'Fourth', 'Fifth']) {
      const body = { name: `${name} team`, members: [{ email, name: 'Eve', role: 'member' }] };
      teams.push(await succeed('POST', '/team', { key: adminKey, body }));
    }
    const memberOf = async (at: number) => {
      const { members } = await succeed<{ members: MemberView[] }>('GET', `/team/${teams[at]?.id}`, { key: adminKey });
      return members.find((member) => member.email === email)?.status;
    };
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, await userKeyOf(email), '/profile');
    const invitations = page.getByRole('region', { name: /^Invitation to / });
    const invitation = (name: string) => page.getByRole('region', { name: `Invitation to ${name} team` });
    const others = page.getByRole('button', { name: '2 more invitations', expanded: false });
    await others.waitFor();
    expect(await invitations.count()).toBe(3);
    expect(await violations(page)).toEqual([]);
    await others.press('Enter');
    await invitation('Fifth').waitFor();
    await page.keyboard.press('Tab');
    expect(await invitation('Fourth').locator('button:focus').textContent()).toBe('Accept the invitation');
    expect(await violations(page)).toEqual([]);
    await picture(page, 'story-own-invitations');
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await page.setViewportSize({ width: 1440, height: 900 });

    await invitation('Fifth').getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await memberOf(4)).toBe('invited');
    await invitation('Fifth').getByRole('button', { name: 'Decline' }).click();
    // Waited for from before the click: it is gone after 6 s.
    await Promise.all([
      page.getByText('You have declined the invitation to Fifth team.').waitFor(),
      page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click(),
    ]);
    await invitation('Fifth').waitFor({ state: 'detached' });
    expect(await memberOf(4)).toBeUndefined();
    await invitation('First').getByRole('button', { name: 'Accept the invitation' }).click();
    await invitation('First').waitFor({ state: 'detached' });
    expect(await memberOf(0)).toBe('active');
    expect(await invitations.count()).toBe(3);
    expect(await page.getByRole('button', { name: /more invitation/ }).count()).toBe(0);
    expect(new URL(page.url()).pathname).toBe('/profile');

    // Whoever declines on a page of the team is led away from it.
    await goTo(page, `/teams/${teams[1]?.id}`);
    await page.getByRole('heading', { level: 1, name: 'Second team' }).waitFor();
    await invitation('Second').getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click();
    await page.waitForURL(`${platformUrl}/teams/${teams[0]?.id}`);
    await page.getByRole('heading', { level: 1, name: 'First team' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
