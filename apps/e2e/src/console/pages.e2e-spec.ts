import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Locator } from 'playwright-core';
import { adminKey, platformUrl, succeed, until } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  logInWithKey,
  openBrowser,
  openTab,
  picture,
  violations,
  type Tab,
} from './browser.js';

describeWhere(browserLack(), 'every page of the console', () => {
  let teamId: string;
  let nodeId: string;
  let ownerKey: string;
  let podName: string;

  beforeAll(async () => {
    await openBrowser();
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 2 }] });
    const { poolId } = await createPool(node, {
      sharing_mode: 'Spatial',
      mechanism: 'mig',
      profiles: ['1g.10gb', '3g.40gb'],
    });
    const tenant = await createTenant('<b>Research</b> מחקר & co', ['team_owner', 'member']);
    teamId = tenant.teamId;
    nodeId = node.nodeId;
    ownerKey = tenant.keys.team_owner ?? '';
    const body = {
      sku: 'gpu.A100-80GB.3g.40gb',
      unit: 'vgpu',
      unit_price: '2.5',
      valid_from: '2026-01-01T00:00:00Z',
      force: true,
    };
    await succeed('POST', '/price', { key: adminKey, body });
    const { subscription_id } = (
      await tenant.subscribe({ pool_id: poolId, vgpus: 2, profile: '3g.40gb', name: 'training' })
    ).body;
    await tenant.subscribed(subscription_id);
    await tenant.start(subscription_id);
    const pod = { team_id: teamId, subscription_id, name: 'notebook', image: 'docker.io/library/python:3.13' };
    ({ pod_name: podName } = await succeed<{ pod_name: string }>('POST', '/pods', { key: ownerKey, body: pod }));
    await until(
      () => succeed<{ status: string }>('GET', `/pods/${podName}`, { key: ownerKey }),
      ({ status }) => status === 'running',
    );
  });
  afterAll(closeBrowser);

  /** Visits pages as a person does, in one tab: by the palette's own navigation, without loading again. */
  async function visit(tab: Tab, path: string, heading: string | RegExp): Promise<void> {
    await goTo(tab.page, path);
    await tab.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await tab.page.locator('.skeleton').first().waitFor({ state: 'detached' });
  }

  const ofTeam: [string, string | RegExp, string][] = [
    ['overview', /Research/, ''],
    ['billing', 'Billing', '/billing'],
    ['billing-by-pool', 'Billing', '/billing?by=pool&interval=daily&zone=utc'],
    ['compare', 'Compare months', '/billing/compare'],
    ['pools', 'GPU pools', '/pools'],
    ['subscriptions', 'Subscriptions', '/subscriptions?ended=yes&window=last_7d'],
    ['pods', 'Pods', '/pods'],
    ['pod', 'notebook', '/pods/{pod}'],
    ['logs', 'Logs', '/logs'],
    ['vms', 'VMs', '/vms?ended=yes'],
    ['no-vm', 'VM', '/vms/0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10'],
    ['volumes', 'Shared volumes', '/volumes'],
    ['baremetal', 'Bare metal', '/baremetal?ended=yes'],
    ['members', 'Members and keys', '/members'],
    ['settings', 'Team settings', '/settings'],
  ];
  const ofOperator: [string, string | RegExp, string][] = [
    ['machines', 'What waits or failed', '/operator/machines'],
    ['processes', 'Pods', '/operator/machines/pods/pod?kind=waiting'],
    ['dead-letters', 'Dead letters', '/operator/dead-letters'],
    ['regions', 'Regions', '/operator/regions'],
    ['clusters', 'Clusters', '/operator/clusters'],
    ['flavours', 'VM flavours', '/operator/flavours'],
    ['nodes', 'Nodes', '/operator/nodes'],
    ['operator-pools', 'Pools', '/operator/pools'],
    ['operator-subscriptions', 'All subscriptions', '/operator/subscriptions'],
    ['baremetal-nodes', 'Bare-metal nodes', '/operator/baremetal'],
    ['prices', 'Prices', '/operator/prices'],
    ['policies', 'Image policies', '/operator/policies'],
    ['teams', 'Teams', '/operator/teams'],
    ['profile', 'Your profile', '/profile'],
    ['ssh-keys', 'SSH keys', '/profile/ssh-keys'],
    ['nothing', 'There is no such page', '/nothing-here'],
  ];

  it.each([
    ['light', 'in all'],
    ['dark', 'in its colours'],
  ] as const)(
    'has no violation of WCAG 2.2 AA in its %s theme (%s), breaks no policy and leaves its origin never',
    async (colorScheme, what) => {
      const tab = await openTab(platformUrl, { colorScheme, viewport: { width: 1440, height: 900 } });
      const found: Record<string, string[]> = {};
      const check = async (name: string) => {
        const here = await violations(tab.page, [], what);
        if (here.length > 0) found[name] = here;
        await picture(tab.page, `${name}-1440-${colorScheme}`);
      };
      await tab.page.goto('/');
      await tab.page.getByLabel('E-mail').waitFor();
      await check('login');
      await logInWithKey(tab.page, adminKey);
      for (const [name, heading, path] of ofTeam) {
        await visit(tab, `/teams/${teamId}${path.replace('{pod}', podName)}`, heading);
        await check(name);
      }
      for (const [name, heading, path] of [...ofOperator, ['node', /gpu/, `/operator/nodes/${nodeId}`] as const]) {
        await visit(tab, path, heading);
        await check(name);
      }
      expect(found).toEqual({});
      expect(tab.faults).toEqual([]);
      await tab.close();
    },
  );

  /** What is read once it is in view may be below all that other stories have made. */
  async function scrollTo({ page }: Tab, wanted: Locator): Promise<void> {
    await page.mouse.move(720, 450);
    for (let steps = 0; (await wanted.count()) === 0; steps += 1) {
      // From the top again, for what was not there yet when it was passed.
      if (steps % 40 === 39) await page.mouse.wheel(0, -100_000);
      await page.mouse.wheel(0, 600);
      await page.waitForTimeout(100);
    }
  }

  it('draws below a GPU how its holders used it, over the window in the address, to the team and to the operator', async () => {
    const use = (tab: Tab) =>
      tab.page.getByRole('img', { name: /^GPU use on GPU \d+: subscription \d+ from [\d.]+% to [\d.]+%/ });
    for (const [key, path] of [
      [ownerKey, `/teams/${teamId}/pools`],
      [adminKey, `/operator/nodes/${nodeId}`],
    ] as const) {
      const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
      await logInWithKey(tab.page, key, `${path}?window=last_1h`);
      await scrollTo(tab, use(tab));
      await tab.page.getByRole('button', { name: /Last hour/ }).click();
      const asked = tab.page.waitForResponse((response) =>
        response.url().endsWith('/utilization?metric_window=last_7d'),
      );
      await tab.page.getByRole('option', { name: 'Last 7 days' }).click();
      expect((await asked).status()).toBe(200);
      expect(new URL(tab.page.url()).search).toBe('?window=last_7d');
      await scrollTo(tab, use(tab));
      expect(tab.faults).toEqual([]);
      await tab.close();
    }
  });

  it('draws it too below a GPU that was empty when the page was opened', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    let isEmpty = true;
    await page.route(`**/api/gpuaas/node/${nodeId}`, async (route) => {
      const response = await route.fetch();
      const node = (await response.json()) as { gpus: object[] };
      const gpus = node.gpus.map((gpu) => ({ ...gpu, slices: [], tenants: [] }));
      await route.fulfill({ response, json: isEmpty ? { ...node, gpus } : node });
    });
    await logInWithKey(page, adminKey, `/operator/nodes/${nodeId}`);
    await page.getByText('A100-80GB').first().waitFor();
    isEmpty = false;
    await scrollTo(tab, page.getByRole('img', { name: /^GPU use on GPU/ }));
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes a broken or outdated address as far as it can be read, and leads back to what there is', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, ownerKey, `/teams/${teamId}/pods?page=999`);
    await page.getByText(/There is no page 999, 1 in all/).waitFor();
    await page.getByRole('button', { name: 'Last page' }).click();
    await page.getByRole('link', { name: 'notebook' }).waitFor();
    expect(new URL(page.url()).search).toBe('?page=1');
    for (const [path, heading] of [
      ['/pods?page=0&ended=maybe', 'Pods'],
      ['/members?page=-1', 'Members and keys'],
      ['/billing?from=2026-13-45&to=x&interval=yearly&by=%00&zone=Mars', 'Billing'],
      ['/billing/compare?first=2026-99&second=', 'Compare months'],
      ['/subscriptions?window=last_9y&ended=1', 'Subscriptions'],
      ['/logs?since=yesterday&at=%ff&live=perhaps', 'Logs'],
      ['/pools?window[]=last_7d', 'GPU pools'],
    ] as const) {
      await visit(tab, `/teams/${teamId}${path}`, heading);
      expect([path, await page.getByRole('alert').count()]).toEqual([path, 0]);
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is answered when it is loaded again, by the address that its link has', async () => {
    const tab = await openTab(platformUrl);
    await logInWithKey(tab.page, adminKey, `/teams/${teamId}`);
    const links = await Promise.all((await tab.page.locator('.side a').all()).map((link) => link.getAttribute('href')));
    expect(links.length).toBeGreaterThan(12);
    const answers = await Promise.all(
      links.map(async (link) => `${(await fetch(`${platformUrl}${link}`)).status} ${link}`),
    );
    expect(answers.filter((answer) => !answer.startsWith('200 '))).toEqual([]);
    await tab.close();
  });

  it('has no wider page than a telephone', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 360, height: 740 } });
    const wide: string[] = [];
    const measure = async (name: string) => {
      await picture(tab.page, `${name}-360-light`);
      const width = await tab.page.evaluate('document.documentElement.scrollWidth');
      if (Number(width) > 360) wide.push(`${name}: ${String(width)}`);
    };
    for (const [name, path] of [
      ['login', '/sign-in'],
      ['link', '/link#atl_no-such-token'],
      ['no-link', '/link'],
    ] as const) {
      await tab.page.goto(path);
      await tab.page.getByRole('heading', { level: 1 }).waitFor();
      await measure(name);
    }
    await logInWithKey(tab.page, adminKey);
    for (const [name, heading, path] of ofTeam) {
      await visit(tab, `/teams/${teamId}${path.replace('{pod}', podName)}`, heading);
      await measure(name);
    }
    for (const [name, heading, path] of [...ofOperator, ['node', /gpu/, `/operator/nodes/${nodeId}`] as const]) {
      await visit(tab, path, heading);
      await measure(name);
    }
    expect(wide).toEqual([]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
