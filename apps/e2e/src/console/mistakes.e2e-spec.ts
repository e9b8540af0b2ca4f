import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, createTeam, fresh, freshEmail, platformUrl, succeed, until } from '../client.js';
import { createNode, createPool, createTenant, halves } from '../gpu-inventory.js';
import { browserLack, closeBrowser, goTo, logInWithKey, openBrowser, openTab } from './browser.js';

describeWhere(browserLack(), 'the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('says that there is no such page at a mistyped address, once, whether or not somebody is logged in', async () => {
    const tab = await openTab(platformUrl);
    const { page } = tab;
    const answer = await page.goto('/nonsense');
    expect(answer?.status()).toBe(404);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await logInWithKey(page, adminKey, '/profile');
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    await goTo(page, '/teams/xyz');
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says what it needs where the browser blocks its storage', async () => {
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await page.addInitScript(() => {
      const get = () => {
        throw new DOMException('Access is denied for this document.', 'SecurityError');
      };
      Object.defineProperty(globalThis, 'localStorage', { get });
    });
    await page.goto('/');
    await page.getByText('Allow its site data', { exact: false }).waitFor();
    expect(tab.faults).toEqual(['script: Access is denied for this document.']);
    await tab.close();
  });

  it('asks in a sentence for what was left empty', async () => {
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await page.goto('/sign-in');
    await page.getByLabel('E-mail').fill('ada@example.com');
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByText('Enter the password.', { exact: true }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says what a key is to whoever enters one as it is shown after its creation', async () => {
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await page.goto('/sign-in');
    await page.getByRole('button', { name: 'Use an API key' }).click();
    await page.getByLabel('API key').fill(`${adminKey.slice(0, 8)}…${adminKey.slice(-4)}`);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('alert').getByText('This is no API key').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes nobody back to the bill who left it while the day that they had typed was awaited', async () => {
    const { team, keys } = await createTeam('Leavers');
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await page.clock.install();
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/volumes`);
    const heading = page.getByRole('heading', { level: 1, name: 'Shared volumes' });
    await heading.waitFor();
    await goTo(page, `/teams/${team.id}/billing`);
    await page.getByLabel('First day').waitFor();
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.getByLabel('First day').fill('2026-10-05');
    await page.goBack();
    await heading.waitFor();
    await page.clock.runFor(2_000);
    expect(new URL(page.url()).pathname).toBe(`/teams/${team.id}/volumes`);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says at their fields that the times of a log are backwards, and that a search is too long', async () => {
    const { team, keys } = await createTeam('Readers of logs');
    const tab = await openTab(platformUrl);
    const { page } = tab;
    const chosen = 'since=2026-10-02T10:00:00.000Z&until=2026-10-01T10:00:00.000Z';
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/logs?${chosen}`);
    await page.getByText('Enter a time after the one in From.').waitFor();
    expect(await page.getByLabel('To (').inputValue()).toBe('2026-10-01T10:00');
    await page.getByLabel('From (').fill('2026-10-01T09:00');
    await page.keyboard.press('Tab');
    await page.getByText('Nothing was written').waitFor();
    expect(new URL(page.url()).searchParams.get('until')).toBe('2026-10-01T10:00:00.000Z');
    expect(await page.getByText('Enter a time after').count()).toBe(0);
    await page.getByLabel('Lines that contain').fill('x'.repeat(201));
    await page.getByText('Enter at most 200 characters; these are 201.').waitFor();
    const search = page.getByRole('button', { name: 'Search' });
    const addresses: string[] = [];
    page.on('framenavigated', (frame) => addresses.push(frame.url()));
    await search.click();
    await page.getByLabel('Lines that contain').fill('y');
    await search.click();
    await page.waitForURL(/[?&]q=y(&|$)/);
    expect(addresses.filter((address) => address.includes('xx'))).toEqual([]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes away the time of a log that was emptied, and not the one that is typed in part', async () => {
    const { team, keys } = await createTeam('Followers of logs');
    const tab = await openTab(platformUrl);
    const { page } = tab;
    const chosen = 'since=2026-10-01T10:00:00.000Z&until=2026-10-02T10:00:00.000Z';
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/logs?${chosen}`);
    const [from, to] = [page.getByLabel('From ('), page.getByLabel('To (')];
    await from.press('Delete');
    expect(await from.inputValue()).toBe('');
    await from.blur();
    expect(await from.inputValue()).toBe('2026-10-01T10:00');
    expect(await page.getByRole('switch', { name: 'Follow' }).isDisabled()).toBe(true);
    await to.fill('');
    await to.blur();
    await page.waitForURL(/logs\?since=2026-10-01T10%3A00%3A00\.000Z$/);
    expect(await page.getByRole('switch', { name: 'Follow' }).isChecked()).toBe(true);
    await from.fill('');
    await from.blur();
    await page.waitForURL(/logs$/);
    await page.getByRole('button', { name: 'All that is kept' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says of the month that is not over that its cost is not yet all of it', async () => {
    const { team, keys } = await createTeam('Comparers');
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/billing/compare?zone=utc`);
    await page.getByRole('heading', { name: /^From \w+ \d{4} to \w+ \d{4} so far$/ }).waitFor();
    await goTo(page, `/teams/${team.id}/billing/compare?zone=utc&first=2026-01&second=2026-02`);
    await page.getByRole('heading', { name: 'From January 2026 to February 2026', exact: true }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows an operator the key and the invitation of the owner of a team that they create', async () => {
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await logInWithKey(page, adminKey, '/operator/teams');
    await page.getByRole('button', { name: 'Create a team' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill(fresh('Invited owners'));
    await dialog.getByLabel('E-mail of its owner').fill(freshEmail('owner'));
    await dialog.getByLabel('Name of its owner').fill('Ada');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog.getByText('The link of the invitation').waitFor();
    const secrets = await dialog.locator('.secret code').allTextContents();
    expect(secrets).toEqual([expect.stringMatching(/^atl_/), expect.stringMatching(/^https?:.*#/)]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows what a slice costs in the currency of the bill', async () => {
    const tenant = await createTenant('Price readers', ['team_owner']);
    const { poolName } = await createPool(await createNode(), {
      ...halves,
      allow_fallback: false,
      temporal_replicas: undefined,
    });
    const price = { sku: 'gpu.A100-80GB.mps-2', unit: 'vgpu', unit_price: '1.25', valid_from: '2026-01-01T00:00:00Z' };
    await succeed('POST', '/price', { key: adminKey, body: { ...price, team_id: tenant.teamId, force: true } });
    const key = tenant.keys.team_owner ?? '';
    await until(
      () =>
        succeed<{ data: { profiles: { unit_price: string | null }[] }[] }>(
          'GET',
          `/gpuaas/available-pools?team_id=${tenant.teamId}`,
          {
            key,
          },
        ),
      // The price of this team: one for all, which another story may have set, holds until that has come.
      ({ data }) => data.some(({ profiles }) => profiles.some(({ unit_price }) => unit_price === '1.25')),
    );
    const tab = await openTab(platformUrl);
    const { page } = tab;
    await logInWithKey(page, key, `/teams/${tenant.teamId}/pools`);
    await page.getByRole('heading', { name: poolName }).waitFor();
    await page
      .getByRole('region', { name: `What ${poolName}` })
      .getByText('$1.25', { exact: true })
      .waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
