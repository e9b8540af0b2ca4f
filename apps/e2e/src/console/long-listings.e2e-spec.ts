import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page } from 'playwright-core';
import { adminKey, createTeam, platformUrl } from '../client.js';
import { browserLack, closeBrowser, goTo, logInWithKey, openBrowser, openTab, violations } from './browser.js';

const live = 127;
const withEnded = 327;

/** Answers a listing with so many rows, page by page. */
async function list(
  page: Page,
  path: string,
  row: (no: number) => object,
  counts = { live, withEnded },
): Promise<void> {
  await page.route(`**/api/${path}?*`, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const total = query.has('include_ended') ? counts.withEnded : counts.live;
    const [at, limit] = [Number(query.get('page') ?? 1), Number(query.get('limit') ?? total)];
    const numbers = Array.from({ length: total }, (_, index) => index + 1).slice((at - 1) * limit, at * limit);
    return route.fulfill({ json: { data: numbers.map(row), pagination: { page: at, limit, total } } });
  });
}

describeWhere(browserLack(), 'where a listing has several pages, the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('reads all of them for what needs attention, and for the pods whose log can be chosen', async () => {
    const { team, keys } = await createTeam('Many');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const state = (no: number) => ({ status: no === live ? 'failed' : 'running', reason: null });
    await list(page, 'pods', (no) => ({ ...state(no), pod_name: `p-${no}`, name: `pod ${no}`, exit_code: null }));
    await list(page, 'vm', (no) => ({ ...state(no), instance_id: `v-${no}`, name: `vm ${no}` }));
    const size = { used_size_in_gb: null, size_in_gb: 10 };
    await list(page, 'shared-volumes', (no) => ({ ...state(no), ...size, volume_id: `s-${no}`, name: `volume ${no}` }));
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    for (const kind of ['pod', 'vm', 'volume'])
      await attention.getByRole('link', { name: `${kind} ${live}`, exact: true }).waitFor();
    await goTo(page, `/teams/${team.id}/logs`);
    const chooser = page.getByRole('group', { name: 'Filters' }).getByRole('button', { name: 'Pod' });
    await chooser.click();
    for (const no of [1, live, withEnded]) {
      await page.getByRole('combobox', { name: 'Part of the name' }).fill(`p-${no}`);
      await page.getByRole('option').first().getByText(`p-${no}`, { exact: true }).waitFor();
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows the best of 2,000 pods as a name is typed at the chooser, and says how many more there are', async () => {
    const { team, keys } = await createTeam('Very many');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await list(page, 'pods', (no) => ({ status: 'running', pod_name: `p-${no}` }), { live: 2_000, withEnded: 2_000 });
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    await goTo(page, `/teams/${team.id}/logs`);
    const chooser = page.getByRole('group', { name: 'Filters' }).getByRole('button', { name: 'Pod' });
    await chooser.click();
    await page.getByText('… and 1,901 more: type more of the name').waitFor();
    expect(await page.getByRole('option').count()).toBe(100);
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await chooser.and(page.locator(':focus')).waitFor();
    await page.keyboard.type('p-1999');
    await page.getByRole('option', { name: 'p-1999' }).and(page.locator(':only-child')).waitFor();
    await page.keyboard.press('Enter');
    await chooser.getByText('p-1999').waitFor();
    // An arrow opens it again. It has both the pod that is chosen and the way back to all.
    await chooser.press('ArrowRight');
    await page.getByRole('option', { name: 'p-1999', selected: true }).waitFor();
    await page.getByRole('option', { name: 'Every pod' }).click();
    await chooser.getByText('Every pod').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('finds the one node that has a GPU for a pool', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await list(page, 'gpuaas/node', (no) => {
      const gpu = { gpu_id: String(no), board: 'A100-80GB', pool_id: no === live ? null : '1' };
      return { node_id: String(no), node_name: `gpu-${no}`, gpuaas_id: '1', status: 'ready', gpus: [gpu] };
    });
    await logInWithKey(page, adminKey, '/operator/pools');
    await page.getByRole('button', { name: 'Create a pool' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: `gpu-${live}` })
      .waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('reads the course of those subscriptions alone that are in view', async () => {
    const { team, keys } = await createTeam('Subscribers of long');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const subscription = {
      ...{
        pool_name: 'a100',
        profile: '1g.10gb',
        status: 'unsubscribed',
        reason: null,
        vgpus_allocated: 1,
        v_ram_gb: 10,
      },
      ...{ metrics: {}, metrics_status: 'no_data', created_at: '2026-11-30T06:00:00.000Z' },
    };
    await list(page, 'gpuaas/pool-subscription', (no) => ({
      ...subscription,
      subscription_id: `${no}`,
      name: `s ${no}`,
    }));
    const read: string[] = [];
    await page.route('**/pool-subscription/*/utilization?*', (route) => {
      read.push(route.request().url().split('/').at(-2) ?? '');
      return route.fulfill({ json: { points: [{ gpu_utilization: 40 }, { gpu_utilization: 60 }] } });
    });
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    await goTo(page, `/teams/${team.id}/subscriptions?ended=yes`);
    await page.getByRole('img', { name: 'GPU use of s 1, from 40% to 60%' }).waitFor();
    await page
      .getByRole('row')
      .filter({ hasText: `#${withEnded} in` })
      .waitFor({ state: 'attached' });
    expect(read).not.toContain(`${withEnded}`);
    await page
      .getByRole('row')
      .filter({ hasText: `#${withEnded} in` })
      .scrollIntoViewIfNeeded();
    await page.getByRole('img', { name: `GPU use of s ${withEnded}, from 40% to 60%` }).waitFor();
    expect(read.length).toBeLessThan(withEnded / 2);
    const look = async (no: number) => {
      await page
        .getByRole('row')
        .filter({ hasText: `#${no} in` })
        .scrollIntoViewIfNeeded();
      await page.getByRole('img', { name: `GPU use of s ${no}, from 40% to 60%` }).waitFor();
    };
    for (let no = 1; no < withEnded; no += 12) await look(no);
    // Another window is another course of the same rows, and read of those in view alone.
    const before = read.length;
    await page.getByRole('button', { name: 'Use over' }).click();
    const next = page.waitForResponse((response) => response.url().includes('metric_window=last_1h'));
    await page.getByRole('option', { name: 'Last hour' }).click();
    await next;
    await look(1);
    expect(read.length - before).toBeLessThan(withEnded / 2);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
