import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, createTeam, platformUrl, succeed, userKeyOf } from '../client.js';
import { browserLack, closeBrowser, logInWithPassword, openBrowser, openTab } from './browser.js';

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
});
