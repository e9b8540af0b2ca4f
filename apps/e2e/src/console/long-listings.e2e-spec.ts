import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page, Route } from 'playwright-core';
import { adminKey, createTeam, platformUrl } from '../client.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  logInWithKey,
  openBrowser,
  openTab,
  showAgain,
  violations,
} from './browser.js';

const live = 127;
const withEnded = 327;
/** Of a listing that is read whole. */
const rowsOfPage = 50;

const subscription = {
  ...{ pool_name: 'a100', profile: '1g.10gb', status: 'active', reason: null, vgpus_allocated: 1, v_ram_gb: 10 },
  ...{ metrics: {}, metrics_status: 'no_data', created_at: '2026-11-30T06:00:00.000Z' },
};
const subscriptionOf = (no: number) => ({ ...subscription, subscription_id: `${no}`, name: `s ${no}` });

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
    const refusal = { code: 'too_many_requests', detail: 'Too many requests. Please try again later.' };
    const refuse = (route: Route) => route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: refusal });
    await page.route(/\/api\/pods\?.*page=2/, refuse, { times: 1 });
    const isOfAll = ({ pathname, searchParams }: URL) => pathname === '/api/pods' && searchParams.has('include_ended');
    await page.route((url) => isOfAll(url) && url.searchParams.get('page') === '4', refuse, { times: 1 });
    await list(page, 'vm', (no) => ({ ...state(no), instance_id: `v-${no}`, name: `vm ${no}` }));
    const lately = new Date(Date.now() - 86_400_000).toISOString();
    const hasEnded = (no: number) => ({ reason: null, created_at: no > 220 ? lately : '2020-01-01T00:00:00.000Z' });
    const read: string[] = [];
    const readOfAll: (string | null)[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (searchParams.has('include_ended') || pathname === '/api/pods')
        read.push(`${pathname} ${searchParams.get('page')}`);
      if (isOfAll(new URL(request.url()))) readOfAll.push(searchParams.get('page'));
    });
    const endedOnly = { live: 0, withEnded };
    // The last one had not ended when it was read with those that have. It is not among the live ones any more.
    const states: Record<number, object> = {
      230: { status: 'failed' },
      [withEnded]: { status: 'active', reason: 'Full.' },
    };
    const ofList = (no: number) => ({ status: 'unsubscribed', ...hasEnded(no), ...states[no] });
    const named = (no: number) => ({ ...ofList(no), subscription_id: `${no}`, name: `subscription ${no}` });
    await list(page, 'gpuaas/pool-subscription', named, endedOnly);
    const host = (no: number) => ({ status: no === 230 ? 'Failed' : 'Released', error: null, ...hasEnded(no) });
    await list(page, 'baremetal', (no) => ({ ...host(no), instance_id: `b-${no}`, name: `host ${no}` }), endedOnly);
    const size = { used_size_in_gb: null, size_in_gb: 10 };
    await list(page, 'shared-volumes', (no) => ({ ...state(no), ...size, volume_id: `s-${no}`, name: `volume ${no}` }));
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    for (const kind of ['pod', 'vm', 'volume'])
      await attention.getByRole('link', { name: `${kind} ${live}`, exact: true }).waitFor();
    // The page that was refused is read again, and not those before it.
    const ofPods = read.filter((one) => one.startsWith('/api/pods '));
    expect(ofPods.slice(0, 3)).toEqual(['/api/pods 1', '/api/pods 2', '/api/pods 2']);
    // Of what has ended, the pages that a week fills and the one that says how many there are.
    for (const [kind, path] of [
      ['subscription', '/api/gpuaas/pool-subscription'],
      ['host', '/api/baremetal'],
    ] as const) {
      await attention.getByRole('link', { name: `${kind} 230`, exact: true }).waitFor();
      expect(new Set(read.filter((one) => one.startsWith(`${path} `)))).toEqual(
        new Set([1, 3, 4].map((no) => `${path} ${no}`)),
      );
    }
    expect(await attention.getByRole('link', { name: `subscription ${withEnded}`, exact: true }).count()).toBe(0);
    await goTo(page, `/teams/${team.id}/logs`);
    const chooser = page.getByRole('group', { name: 'Filters' }).getByRole('button', { name: 'Pod' });
    await chooser.click();
    for (const no of [1, live, withEnded]) {
      await page.getByRole('combobox', { name: 'Part of the name' }).fill(`p-${no}`);
      await page.getByRole('option').first().getByText(`p-${no}`, { exact: true }).waitFor();
    }
    expect(readOfAll.toSorted()).toEqual(['1', '3', '4', '4']);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows the best of 2,000 pods as a name is typed at the chooser, and says how many more there are', async () => {
    const { team, keys } = await createTeam('Very many');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await list(page, 'pods', (no) => ({ status: 'running', pod_name: `p-${no}` }), { live: 2_000, withEnded: 2_000 });
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    await page.keyboard.press('Control+k');
    // In the order of the sidebar; the team's own name leads to its overview.
    await page.getByRole('option').first().getByText('Overview').waitFor();
    await page.keyboard.type(team.name);
    await page.getByRole('option', { name: 'Overview' }).and(page.locator(':only-child')).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('option').waitFor({ state: 'detached' });
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

  it('renders a page of what it has read, finds in all of it, and has all of it on paper', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const counts = { live: 1_010, withEnded: 1_010 };
    const text = { gpuaas_id: '1', board: 'A100-80GB', sharing_mode: 'Spatial', mechanism: 'mig' };
    const pool = { ...text, gpu_ids: ['1'], profiles: ['1g.10gb'], overcommit: 1, allow_fallback: false };
    await list(page, 'gpuaas/all-pools', (no) => ({ ...pool, pool_id: `${no}`, pool_name: `pool ${no}` }), counts);
    const policy = { description: '', is_default: false, objects: [] };
    await list(page, 'policy/image', (no) => ({ ...policy, id: `${no}`, name: `Policy ${no}` }), counts);
    await logInWithKey(page, adminKey, '/operator/pools');
    const rows = page.locator('tbody tr');
    const place = page.getByRole('status');
    const pages = page.getByRole('navigation', { name: 'Pages' });
    await place.getByText('1 to 50 of 1,010').waitFor();
    expect(await rows.count()).toBe(rowsOfPage);
    await pages.getByRole('button', { name: 'Next' }).press('Enter');
    await place.getByText('51 to 100 of 1,010').waitFor();
    expect(await page.getByRole('table').getAttribute('aria-rowcount')).toBe('1011');
    expect(await rows.first().getAttribute('aria-rowindex')).toBe('52');
    await pages.getByRole('button', { name: 'Next' }).and(page.locator(':focus')).waitFor();
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    await rows.nth(counts.live - 1).waitFor();
    await page.evaluate(`dispatchEvent(new Event('afterprint'))`);
    await page.emulateMedia({ media: 'screen' });
    await place.getByText('51 to 100 of 1,010').waitFor();
    await page.getByLabel('Find in Pools').fill('POOL 10');
    await place.getByText('22 of 1,010 match').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel('Find in Pools').fill('pool 9');
    await place.getByText('111 of 1,010 match').waitFor();
    for (const at of ['2 of 3', '3 of 3']) {
      await pages.getByRole('button', { name: 'Next' }).press('Enter');
      await pages.getByText(`Page ${at}`).waitFor();
    }
    await place.getByText('111 of 1,010 match; 101 to 111 are shown').waitFor();
    // There is no next page, so the focus is above the rows, and not lost.
    await page.locator(':focus').getByLabel('Find in Pools').waitFor();
    await page.getByLabel('Find in Pools').fill('none such');
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();

    await page.getByRole('link', { name: 'Image policies' }).click();
    await page.getByLabel('Find in Image policies').fill('policy 1010');
    await page.getByRole('button', { name: 'Delete Policy 1010', exact: true }).waitFor();
    expect(await page.getByRole('button', { name: /^Delete Policy/ }).count()).toBe(1);
    // Back closes the palette first, and the way on does not open it.
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Page or team' }).waitFor();
    await page.goBack();
    await page.getByRole('combobox', { name: 'Page or team' }).waitFor({ state: 'detached' });
    await page.getByLabel('Find in Image policies').waitFor();
    await page.goBack();
    await page.getByLabel('Find in Pools').waitFor();
    await page.goForward();
    await page.getByLabel('Find in Image policies').waitFor();
    expect(await page.getByRole('combobox', { name: 'Page or team' }).count()).toBe(0);
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
    await list(page, 'gpuaas/pool-subscription', subscriptionOf);
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
      .filter({ hasText: `#${rowsOfPage} in` })
      .waitFor({ state: 'attached' });
    expect(read).not.toContain(`${rowsOfPage}`);
    // A button is named with its row, and those of its dialog are not.
    await page.getByRole('button', { name: 'Unsubscribe s 1 #1 in a100', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click();
    const look = async (no: number) => {
      await page
        .getByRole('row')
        .filter({ hasText: `#${no} in` })
        .scrollIntoViewIfNeeded();
      await page.getByRole('img', { name: `GPU use of s ${no}, from 40% to 60%` }).waitFor();
    };
    for (let no = 1; no <= rowsOfPage; no += 7) await look(no);
    // Another window is another course of the same rows, and read of those in view alone.
    const before = read.length;
    await page.getByRole('button', { name: 'Use over' }).click();
    const next = page.waitForResponse((response) => response.url().includes('metric_window=last_1h'));
    await page.getByRole('option', { name: 'Last hour' }).click();
    await next;
    await look(1);
    expect(read.length - before).toBeLessThan(rowsOfPage / 2);
    await page.getByLabel('Find in Subscriptions').fill(`S ${withEnded}`);
    await look(withEnded);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('keeps a dialog open while its row leaves the page or what was found, and the field that is in use', async () => {
    const { team, keys } = await createTeam('Patient');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    /** The first of them is the one that is being subscribed. */
    let [status, first, last] = ['subscribing', 2, 60];
    await page.route('**/api/gpuaas/pool-subscription?*', (route) => {
      const numbers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
      const rows = numbers.map((no) => ({ ...subscriptionOf(no), ...(no === 2 && { status }) }));
      return route.fulfill({ json: { data: rows } });
    });
    await page.route('**/pool-subscription/*/utilization?*', (route) => route.fulfill({ json: { points: [] } }));
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    await goTo(page, `/teams/${team.id}/subscriptions?ended=yes`);
    const find = page.getByLabel('Find in Subscriptions');
    const row = page.locator('tbody tr').filter({ hasText: '#2 in' });
    const dialog = page.getByRole('dialog');
    const open = async () => {
      await row.getByRole('button', { name: 'Unsubscribe' }).click();
      await dialog.getByText('Give back what “s 2” holds?').waitFor();
    };
    const close = async () => {
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await find.fill('subscribing');
    await open();
    status = 'active';
    // It says how it is now, though it is not found by that.
    await row.getByText('Active').waitFor();
    await close();
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();

    status = 'subscribing';
    await find.fill('');
    await showAgain(page);
    await row.getByText('Subscribing').waitFor();
    await open();
    // From here on it is on the second page.
    [status, first, last] = ['active', -60, 60];
    await row.getByText('Active').waitFor();
    await close();
    await row.waitFor({ state: 'detached' });
    await find.focus();
    [first, last] = [1, 3];
    await showAgain(page);
    await page.getByRole('status').getByText('1 to 3 of 3').waitFor();
    await find.and(page.locator(':focus')).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('prints the cards of one page where each reads what it shows', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await list(page, 'gpuaas', (no) => ({ gpuaas_id: `${no}`, name: `service ${no}` }));
    const cluster = { driver: 'simulator', status: 'ready', since: null, public_host: 'a.example', checks: [] };
    const read = new Set<string>();
    await page.route('**/api/gpuaas/*/cluster', (route) => {
      read.add(route.request().url());
      return route.fulfill({ json: { ...cluster, socket: null, url: null, capabilities: {} } });
    });
    await logInWithKey(page, adminKey, '/operator/clusters');
    const cards = page.getByText('a.example');
    await cards.nth(rowsOfPage - 1).waitFor();
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    await page.getByText(`Page 1 of 3, ${live} in all`).waitFor();
    expect(read.size).toBe(rowsOfPage);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says of a total that it is of all, where only a page of them is shown', async () => {
    const { team, keys } = await createTeam('Spenders');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const items = Array.from({ length: 60 }, (_, at) => ({
      ...{ kind: 'vgpu', sku: `sku ${at + 1}`, unit: 'vGPU', unit_hours: 1, cost: '1' },
    }));
    const interval = {
      start: '2026-11-30T00:00:00+01:00',
      end: '2026-12-01T00:00:00+01:00',
      cost: '60',
      partial: false,
    };
    const report = { currency: 'EUR', timezone: 'Europe/Oslo', as_of: '2026-11-30T06:00:00.000Z', total_cost: '60' };
    await page.route('**/api/team-billing/**', (route) =>
      route.fulfill({ json: { ...report, unpriced: [], intervals: [{ ...interval, items }] } }),
    );
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/billing`);
    const table = page.getByRole('region', { name: 'Cost by what it was for' }).getByRole('table');
    const foot = table.locator('tfoot tr');
    await foot.getByText('Total of all', { exact: true }).waitFor();
    expect([await table.getAttribute('aria-rowcount'), await foot.getAttribute('aria-rowindex')]).toEqual(['62', '62']);
    await page.getByLabel('Find in Cost by what it was for').fill('sku 7');
    await table.locator('tbody tr').and(page.locator(':only-child')).waitFor();
    await foot.getByText('Total of all', { exact: true }).waitFor();
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    await page.getByLabel('Find in Cost by what it was for').fill('');
    await foot.getByText('Total', { exact: true }).waitFor();
    expect(await table.getAttribute('aria-rowcount')).toBeNull();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
