import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { call, platformUrl } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import { browserLack, closeBrowser, logInWithKey, openBrowser, openTab, picture, violations } from './browser.js';

describeWhere(browserLack(), 'shared volumes in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('are created, grow, and are not made smaller; another team sees none of them', async () => {
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
    await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
    const tenant = await createTenant('Volume users', ['team_owner', 'member']);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, tenant.keys.member ?? '', `/teams/${tenant.teamId}/volumes`);
    await page.getByRole('button', { name: 'Create a volume' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('datasets');
    await dialog.getByLabel('Size in GB').fill('50');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.getByRole('region', { name: 'Shared volumes' }).getByRole('row').filter({ hasText: 'datasets' });
    await row.getByText('active', { exact: true }).waitFor();
    for (const [size, outcome] of [
      ['20', 'refused'],
      ['80', 'accepted'],
    ]) {
      await row.getByRole('button', { name: 'Resize' }).click();
      await dialog.getByLabel('Size in GB').fill(size ?? '');
      await dialog.getByRole('button', { name: 'Resize' }).click();
      if (outcome === 'accepted') continue;
      await dialog.getByRole('alert').waitFor();
      await dialog.getByRole('button', { name: 'Cancel' }).click();
    }
    await row.getByText(/of 80 GB/).waitFor();
    for (const theme of ['Light', 'Dark']) {
      await page.getByRole('radio', { name: theme }).click();
      expect(await violations(page)).toEqual([]);
      await picture(page, `story-volumes-${theme}`);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await page.setViewportSize({ width: 1440, height: 900 });
    const stranger = await createTenant('Volume strangers');
    expect((await call('GET', `/shared-volumes?team_id=${tenant.teamId}`, { key: stranger.key })).status).toBe(404);
    await row.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No shared volumes').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
