import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, createTeam, platformUrl, succeed, userKeyOf } from '../client.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  hide,
  logInWithKey,
  logInWithPassword,
  openBrowser,
  openTab,
} from './browser.js';

interface TeamOfUser {
  id: string;
  name: string;
}

describeWhere(browserLack(), 'the teams of a user and their roles, in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  /** A user of two teams, in the order in which the console lists them. */
  async function createUserOfTwo(): Promise<{ email: string; key: string; teams: TeamOfUser[] }> {
    const [{ team }, other] = [await createTeam('One of two'), await createTeam('Two of two')];
    const email = team.members[0]?.email ?? '';
    const body = { email, name: 'Ada', role: 'member' };
    await succeed('POST', `/team/${other.team.id}/members`, { key: adminKey, body });
    const key = await userKeyOf(email);
    await succeed('POST', `/team/${other.team.id}/invitations/accept`, { key });
    const { teams } = await succeed<{ teams: TeamOfUser[] }>('GET', '/user/profile', { key });
    return { email, key, teams };
  }

  it('stays with the team of the last page on pages of none, and after one of those is loaded again', async () => {
    const { email, teams } = await createUserOfTwo();
    const { id, name } = teams[1] as TeamOfUser;
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithPassword(page, email, 'correct horse battery staple', `/teams/${id}/pods`);
    const isOfTeam = async () => {
      await page.locator('.side').getByRole('button', { name }).waitFor();
      expect(await page.getByRole('link', { name: 'Pods', exact: true }).getAttribute('href')).toBe(
        `/teams/${id}/pods`,
      );
    };
    await page.getByRole('link', { name: 'SSH keys' }).click();
    await page.getByRole('heading', { level: 1, name: 'SSH keys' }).waitFor();
    await isOfTeam();
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'SSH keys' }).waitFor();
    await isOfTeam();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('offers no more what a role allowed that was taken away, once the refusal of that was read', async () => {
    const { team, keys, ids } = await createTeam('Demoting', ['team_owner', 'member']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, keys.member ?? '', `/teams/${team.id}/baremetal`);
    const request = page.getByRole('button', { name: 'Request a host' });
    await request.click();
    await hide(page);
    await succeed('PUT', `/team/${team.id}/members/${ids.member}`, { key: keys.team_owner, body: { role: 'viewer' } });
    await dialog.getByLabel('Name').fill('refused');
    await dialog.getByLabel('GPUs, at least').fill('1');
    await dialog.getByRole('button', { name: 'Request', exact: true }).click();
    await dialog.getByText('The role viewer may not do this').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await request.waitFor({ state: 'detached' });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('lists a team no more from which the user was removed, once a page of it is not found', async () => {
    const { email, key, teams } = await createUserOfTwo();
    const { id, name } = teams[1] as TeamOfUser;
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const picker = page.locator('.side').getByRole('button', { name: 'Team' });
    await logInWithKey(page, key, `/profile`);
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    const { members } = await succeed<{ members: { user_id: string; email: string }[] }>('GET', `/team/${id}`, {
      key: adminKey,
    });
    const member = members.find((one) => one.email === email);
    await hide(page);
    await succeed('DELETE', `/team/${id}/members/${member?.user_id}`, { key: adminKey });
    await goTo(page, `/teams/${id}/volumes`);
    await page.getByText('This was not found').first().waitFor();
    await goTo(page, '/profile');
    await page.getByRole('main').getByText(name).waitFor({ state: 'detached' });
    await picker.getByText(teams[0]?.name ?? '').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('reads its role again each minute', async () => {
    const { team, keys } = await createTeam('Minutes');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await page.clock.install();
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/settings`);
    await page.getByRole('heading', { level: 1, name: 'Team settings' }).waitFor();
    const read = page.waitForRequest('**/api/user/profile');
    await page.clock.fastForward(60_000);
    await read;
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
