import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, call, freshEmail, platformUrl, succeed, until } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  hide,
  logInWithKey,
  openBrowser,
  openTab,
  picture,
  violations,
} from './browser.js';
import { isFit } from './fit.js';

describeWhere(browserLack(), 'VMs in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('are made of a flavour that the operator creates, mount a volume, restart by a switch, stop, start, and are deleted after a question', async () => {
    const flavour = `size-${Date.now()}`;
    const desk = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    await logInWithKey(desk.page, adminKey, '/operator/flavours');
    await desk.page.getByRole('button', { name: 'Create a flavour' }).click();
    await desk.page.getByRole('dialog').getByLabel('Name').fill(flavour);
    await desk.page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
    await desk.page.getByRole('rowheader', { name: flavour }).waitFor();
    expect(await violations(desk.page)).toEqual([]);

    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
    await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
    const tenant = await createTenant('VM users', ['team_owner', 'member', 'viewer']);
    const owner = tenant.keys.team_owner ?? '';
    const volume = { team_id: tenant.teamId, region_id: node.regionId, name: 'datasets', size_in_gb: 10 };
    const { volume_id } = await succeed<{ volume_id: string }>('POST', '/shared-volumes', {
      key: tenant.key,
      body: volume,
    });
    await until(
      () => succeed<{ status: string }>('GET', `/shared-volumes/${volume_id}`, { key: tenant.key }),
      ({ status }) => status === 'active',
    );

    const offered = await succeed<{ data: { region_id: string; region_name: string }[] }>(
      'GET',
      `/gpuaas/available-regions?team_id=${tenant.teamId}&limit=100`,
      tenant,
    );
    const regionName = offered.data.find(({ region_id }) => region_id === node.regionId)?.region_name ?? '';

    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, owner, `/teams/${tenant.teamId}/vms`);
    await page.getByText('There is no VM').waitFor();
    await page.getByRole('button', { name: 'Create a VM' }).click();
    await dialog.getByLabel('Name').fill('Not A Name');
    await dialog.getByRole('button', { name: 'Region' }).click();
    await page.getByRole('option', { name: regionName }).click();
    await dialog.getByRole('button', { name: 'Flavour' }).click();
    await page.getByRole('option', { name: flavour }).click();
    await dialog.getByRole('button', { name: 'Mount a shared volume' }).click();
    await page.getByRole('option', { name: 'datasets' }).click();
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog
      .getByText(/name must be/)
      .first()
      .waitFor();
    await dialog.getByLabel('Name').fill('head-node');
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    await picture(page, 'story-vm-create');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.getByRole('region', { name: 'VMs' }).getByRole('row').filter({ hasText: 'head-node' });
    await row.getByText('running', { exact: true }).waitFor();
    await row.getByText('a volume at /mnt/datasets').waitFor();

    const vm = async () => {
      const { data } = await succeed<{ data: { auto_restart: boolean; instance_id: string }[] }>(
        'GET',
        `/vm?team_id=${tenant.teamId}`,
        tenant,
      );
      return data[0];
    };
    const restarts = row.getByRole('switch', { name: 'Restart head-node by itself' });
    expect(await restarts.isChecked()).toBe(true);
    await row.locator('.switch').click();
    await until(vm, (found) => found?.auto_restart === false);
    expect(await restarts.isChecked()).toBe(false);
    await isFit(page, 'vms');

    const looker = await openTab(platformUrl);
    await logInWithKey(looker.page, tenant.keys.viewer ?? '', `/teams/${tenant.teamId}/vms`);
    await looker.page.getByRole('rowheader', { name: 'head-node' }).waitFor();
    expect(await looker.page.getByRole('button', { name: /Create a VM|Stop|Delete/ }).count()).toBe(0);
    expect(await looker.page.getByRole('switch', { name: 'Restart head-node by itself' }).isDisabled()).toBe(true);
    // A role that was taken away is noticed by what it refuses, and its words are read before the page changes.
    const members = `/team/${tenant.teamId}/members`;
    const added = await succeed<{ user_id: string; api_key: string }>('POST', members, {
      key: owner,
      body: { email: freshEmail('demoted'), name: 'Demoted', role: 'member' },
    });
    const demoted = await openTab(platformUrl);
    await logInWithKey(demoted.page, added.api_key, `/teams/${tenant.teamId}/vms`);
    const create = demoted.page.getByRole('button', { name: 'Create a VM' });
    await create.waitFor();
    // What its user did is not done again by itself, and nobody says so.
    const toggle = demoted.page.getByRole('row').filter({ hasText: 'head-node' }).locator('.switch');
    const refusal = demoted.page.getByRole('dialog');
    await demoted.page.context().setOffline(true);
    await toggle.click();
    await refusal.getByText('No connection').waitFor();
    expect(await refusal.getByText('again').count()).toBe(0);
    await refusal.getByRole('button', { name: 'Close' }).click();
    await demoted.page.context().setOffline(false);
    await hide(demoted.page);
    await succeed('PUT', `${members}/${added.user_id}`, { key: owner, body: { role: 'viewer' } });
    await toggle.click();
    await refusal.getByText('The role viewer may not do this').waitFor();
    await refusal.getByRole('button', { name: 'Close' }).click();
    await create.waitFor({ state: 'detached' });

    const stranger = await createTenant('VM strangers');
    expect((await call('GET', `/vm?team_id=${tenant.teamId}`, { key: stranger.key })).status).toBe(404);

    const price = {
      sku: `vm.${flavour}`,
      unit: 'vm',
      unit_price: '0.2',
      valid_from: '2026-01-01T00:00:00Z',
      force: true,
    };
    await succeed('POST', '/price', { key: adminKey, body: price });
    const year = new Date().getUTCFullYear();
    const report = `/team-billing/${tenant.teamId}/${year}-01-01T00:00:00/${year + 1}-01-01T00:00:00/monthly/utc`;
    await until(
      () => succeed<{ intervals: { items: { sku: string }[] }[] }>('GET', report, { key: owner }),
      ({ intervals }) => intervals.some(({ items }) => items.some(({ sku }) => sku === price.sku)),
    );
    await row.getByRole('link', { name: 'head-node' }).click();
    await page.getByRole('heading', { level: 1, name: 'head-node' }).waitFor();
    await page.getByRole('region', { name: 'Cost' }).getByText(`All VMs of ${flavour}, this month so far`).waitFor();
    await page.getByRole('region', { name: 'Shared volumes' }).first().getByText('/mnt/datasets').waitFor();
    const runs = page.getByRole('region', { name: 'What runs' });
    await runs.locator('.switch').click();
    await until(vm, (found) => found?.auto_restart === true);
    await isFit(page, 'vm');

    const instanceId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    // Under the address of another team it is as one that is unknown, for those too who may see it.
    await goTo(desk.page, `/teams/${stranger.teamId}/vms/${instanceId}`);
    await desk.page.getByRole('heading', { level: 1, name: 'VM', exact: true }).waitFor();
    await desk.page.getByRole('alert').getByText('This was not found').waitFor();
    expect(await desk.page.locator('.page-head button').count()).toBe(0);

    const head = page.locator('.page-head');
    const confirm = async (name: string) => {
      await head.getByRole('button', { name }).click();
      await dialog.getByRole('button', { name }).click();
    };
    // Waited for from before the click: it is gone after 6 s.
    await Promise.all([page.getByText('head-node is being restarted.').waitFor(), confirm('Restart')]);
    await head.getByText('running', { exact: true }).waitFor();
    await confirm('Stop');
    await head.getByText('stopped', { exact: true }).waitFor();
    await head.getByRole('button', { name: 'Start' }).click();
    await head.getByText('running', { exact: true }).waitFor();
    await confirm('Delete');
    await page.getByText('There is no VM').waitFor();
    await page.getByText('Show what has ended').click();
    const ended = page.getByRole('row').filter({ hasText: 'head-node' });
    await ended.getByText('deleted', { exact: true }).waitFor();
    expect(await ended.locator('a, button').count()).toBe(0);
    expect(await ended.getByRole('switch').isDisabled()).toBe(true);
    await page.goBack();
    await page.getByRole('alert').getByText('This was not found').waitFor();
    expect((await call('GET', `/vm/${instanceId}`, { key: stranger.key })).status).toBe(404);

    await desk.page.getByRole('link', { name: 'Clusters' }).click();
    await Promise.all([
      desk.page.getByText(/ was checked\./).waitFor(),
      desk.page.getByRole('button', { name: 'Check' }).first().click(),
    ]);
    expect(await violations(desk.page)).toEqual([]);
    await picture(desk.page, 'story-clusters');
    for (const each of [tab, looker, demoted, desk]) {
      expect(each.faults).toEqual([]);
      await each.close();
    }
  });
});
