import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, createTeam, platformUrl } from '../client.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  holdCalls,
  logInWithKey,
  openBrowser,
  openTab,
  showAgain,
} from './browser.js';

const at = '2026-11-30T06:00:00.000Z';
const held = {
  status: 'active',
  reason: null,
  vgpus_allocated: 1,
  v_ram_gb: 10,
  metrics: {},
  metrics_status: 'no_data',
};
const subscription = {
  ...held,
  subscription_id: '1',
  name: 's 1',
  pool_name: 'a100',
  profile: '1g.10gb',
  created_at: at,
};
const volumeOf = (name: string) => ({
  ...{ volume_id: name, name, region_id: '1', status: 'available', reason: null },
  ...{ used_size_in_gb: null, size_in_gb: 10, created_at: at },
});

describeWhere(browserLack(), 'a listing in use in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('keeps the dialog of the last row open when that row goes, and the listing too, and shows then what there is', async () => {
    const { team, keys } = await createTeam('Lasting');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    let answer: 'a row' | 'none' | 'not found' = 'a row';
    const gone = { status: 404, code: 'not_found', detail: 'No such listing.' };
    const listings = {
      'shared-volumes': volumeOf('models'),
      'gpuaas/pool-subscription': subscription,
      'gpuaas/available-regions': { region_id: '1', region_name: 'north', city: null },
    };
    for (const [path, row] of Object.entries(listings)) {
      await page.route(`**/api/${path}?*`, (route) => {
        if (answer === 'not found') return route.fulfill({ status: 404, json: gone });
        const data = answer === 'a row' ? [row] : [];
        return route.fulfill({ json: { data, pagination: { page: 1, limit: 20, total: data.length } } });
      });
    }
    await page.route('**/pool-subscription/*/utilization?*', (route) => route.fulfill({ json: { points: [] } }));
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/volumes`);
    const dialog = page.getByRole('dialog');
    const readAgain = async (listing: string) => {
      const read = page.waitForResponse((response) => response.url().includes(listing));
      await showAgain(page);
      await (await read).finished();
    };
    for (const [path, listing, opener, none] of [
      ['volumes', 'shared-volumes?', 'Delete models', 'No shared volumes'],
      ['subscriptions', 'pool-subscription?', 'Unsubscribe s 1', 'Nothing is subscribed'],
    ] as const) {
      answer = 'a row';
      await goTo(page, `/teams/${team.id}/${path}`);
      await page.getByRole('button', { name: opener }).click();
      await dialog.waitFor();
      answer = 'none';
      await readAgain(listing);
      // What is read next is shown after that.
      answer = 'not found';
      await showAgain(page);
      await page.getByText('This was not found').waitFor();
      await readAgain(listing);
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      const again = page.getByRole('button', { name: 'Try again' });
      await again.waitFor();
      await page.getByRole('button', { name: opener }).waitFor({ state: 'detached' });
      answer = 'none';
      await again.click();
      await page.getByRole('heading', { name: none }).waitFor();
    }
    // So does a form when what it chose from is gone.
    answer = 'a row';
    await goTo(page, `/teams/${team.id}/volumes`);
    await page.getByRole('button', { name: 'Create a volume' }).click();
    await dialog.getByLabel('Name').fill('data');
    answer = 'none';
    await readAgain('available-regions?');
    answer = 'not found';
    await showAgain(page);
    await dialog.getByText('This was not found').waitFor();
    await readAgain('available-regions?');
    expect(await dialog.getByLabel('Name').inputValue()).toBe('data');
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says in the address what is sought and which page is shown: Back, a link and a reload have them', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await page.route('**/api/region?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [no, limit] = [Number(query.get('page')), Number(query.get('limit'))];
      const numbers = Array.from({ length: 1_010 }, (_, index) => index + 1).slice((no - 1) * limit, no * limit);
      const data = numbers.map((number) => ({ region_id: `${number}`, region_name: `region ${number}`, city: null }));
      return route.fulfill({ json: { data, pagination: { page: no, limit, total: 1_010 } } });
    });
    await logInWithKey(page, adminKey, '/operator/regions?find=region+9&page=2');
    const find = page.getByLabel('Find in Regions');
    const place = page.getByRole('status');
    const pages = page.getByRole('navigation', { name: 'Pages' });
    const search = () => new URL(page.url()).search;
    await place.getByText('111 of 1,010 match; 51 to 100 are shown').waitFor();
    await pages.getByRole('button', { name: 'Next' }).click();
    await place.getByText('101 to 111 are shown').waitFor();
    expect([search(), await find.inputValue()]).toEqual(['?find=region+9&page=3', 'region 9']);
    // What is typed is shown from its first page, and is no step of the history.
    await find.press('End');
    await page.keyboard.type('9');
    await place.getByText('11 of 1,010 match').waitFor();
    await page.waitForURL((url) => url.search === '?find=region+99');
    await find.and(page.locator(':focus')).waitFor();
    await page.goBack();
    await place.getByText('51 to 100 are shown').waitFor();
    expect([search(), await find.inputValue()]).toEqual(['?find=region+9&page=2', 'region 9']);
    await page.goForward();
    await place.getByText('11 of 1,010 match').waitFor();
    // Who goes back while typing finds what was there, and the address takes nothing of it later.
    await page.clock.install();
    await find.press('End');
    await page.evaluate("document.execCommand('insertText', false, '5'); history.back()");
    await place.getByText('51 to 100 are shown').waitFor();
    await page.clock.fastForward(1_000);
    await page.goForward();
    await place.getByText('11 of 1,010 match').waitFor();
    await page.goBack();
    await place.getByText('51 to 100 are shown').waitFor();
    expect([search(), await find.inputValue()]).toEqual(['?find=region+9&page=2', 'region 9']);
    // Who goes on at once leaves the field, and finds it on the way back as it was.
    await find.fill('region 7');
    await page.getByRole('link', { name: 'Image policies' }).click();
    await page.getByRole('heading', { name: 'Image policies', level: 1 }).waitFor();
    await page.goBack();
    await place.getByText('111 of 1,010 match; 1 to 50 are shown').waitFor();
    expect([search(), await find.inputValue()]).toEqual(['?find=region+7', 'region 7']);
    await page.getByRole('link', { name: 'Regions', exact: true }).click();
    await place.getByText('1 to 50 of 1,010').waitFor();
    expect(await find.inputValue()).toBe('');
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('finds a team among all by a part of its name, or by its id', async () => {
    const made = [];
    for (let no = 1; no <= 22; no += 1) made.push(await createTeam(`Haystack ${no}`));
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/operator/teams?find=haystack&page=1');
    const find = page.getByLabel('Find in Teams');
    const found = page.getByRole('status');
    const pages = page.getByRole('navigation', { name: 'Pages' });
    const search = () => new URL(page.url()).search;
    const names = page.getByRole('rowheader').getByRole('link');
    await found.getByText('22 found', { exact: true }).waitFor();
    await pages.getByText('Page 2 of 2, 22 in all').waitFor();
    expect(await names.allInnerTexts()).toEqual(['Haystack 21', 'Haystack 22']);
    await pages.getByRole('button', { name: 'Previous' }).click();
    await page.getByRole('link', { name: 'Haystack 1', exact: true }).waitFor();
    expect([search(), await names.count()]).toEqual(['?find=haystack&page=0', 20]);
    // What is typed is no step of the history, and leaves the rows until others are found.
    await find.press('End');
    await page.keyboard.type(' 2');
    await found.getByText('4 found', { exact: true }).waitFor();
    expect(await names.allInnerTexts()).toEqual(['Haystack 2', 'Haystack 20', 'Haystack 21', 'Haystack 22']);
    expect(search()).toBe('?find=haystack+2');
    await find.and(page.locator(':focus')).waitFor();
    await page.goBack();
    await found.getByText('22 found', { exact: true }).waitFor();
    expect([search(), await find.inputValue()]).toEqual(['?find=haystack&page=1', 'haystack']);
    await find.fill(made[6]?.team.id ?? '');
    await found.getByText('1 found', { exact: true }).waitFor();
    expect(await names.allInnerTexts()).toEqual(['Haystack 7']);
    await find.fill('haystack%');
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
    await found.getByText('0 found', { exact: true }).waitFor();
    // Until the answer comes, nothing says that there is no team.
    const all = await holdCalls(page, '**/api/team?page=0&limit=20');
    await find.fill('');
    await all.held;
    await found.getByText('0 found', { exact: true }).waitFor({ state: 'detached' });
    expect(await page.getByRole('heading', { level: 3 }).allInnerTexts()).toEqual(['Nothing matches']);
    all.letGo();
    await pages.waitFor();
    expect([search(), await found.getByText('found').count()]).toEqual(['', 0]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows nothing of one team on the page of another to which the history leads while a dialog is open', async () => {
    const [ours, theirs] = [await createTeam('Former'), await createTeam('Latter')];
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await page.route('**/api/shared-volumes?*', (route) => {
      const name = route.request().url().includes(ours.team.id) ? 'former' : 'latter';
      return route.fulfill({ json: { data: [volumeOf(name)], pagination: { page: 1, limit: 20, total: 1 } } });
    });
    await logInWithKey(page, adminKey, `/teams/${theirs.team.id}/volumes`);
    const latter = page.getByRole('row').filter({ hasText: 'latter' });
    await latter.waitFor();
    for (const opener of ['Delete former', 'Create a volume']) {
      await goTo(page, `/teams/${ours.team.id}/volumes`);
      await page.getByRole('row').filter({ hasText: 'former' }).waitFor();
      await page.getByRole('button', { name: opener }).click();
      await page.getByRole('dialog').waitFor();
      await page.goBack();
      await latter.waitFor({ state: 'attached' });
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await page.getByText('former', { exact: true }).count()).toBe(0);
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('turns the pages of a listing by the same button, which keeps the focus, and says which page is shown', async () => {
    const { team, keys } = await createTeam('Turning');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await page.route('**/api/shared-volumes?*', (route) => {
      const no = Number(new URL(route.request().url()).searchParams.get('page'));
      const data = Array.from({ length: 20 }, (_, at) => volumeOf(`volume ${(no - 1) * 20 + at + 1}`));
      return route.fulfill({ json: { data, pagination: { page: no, limit: 20, total: 60 } } });
    });
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/volumes`);
    const pages = page.getByRole('navigation', { name: 'Pages' });
    const next = pages.getByRole('button', { name: 'Next' });
    await next.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: 'volume 21' }).waitFor();
    await pages.getByRole('status').getByText('Page 2 of 3, 60 in all').waitFor();
    await next.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: 'volume 41' }).waitFor();
    // The last page has no next one.
    await page.getByRole('group', { name: 'Shared volumes' }).and(page.locator(':focus')).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('keeps a dialog open when what it is about changes its state or goes, and leaves what its user has deleted', async () => {
    const { team, keys } = await createTeam('Steady');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const vm = {
      ...{ instance_id: 'v1', name: 'calm', team_id: team.id, region_id: '1', flavour: 'small', vcpus: 2 },
      ...{ memory_gb: 4, image: 'debian:13', status: 'running', reason: null, restarts: 0, auto_restart: false },
      ...{ volumes: [], created_at: at, started_at: at, deleted_at: null as string | null },
    };
    let now: typeof vm | 'gone' = vm;
    const answered = Promise.withResolvers<void>();
    await page.route('**/api/vm/v1', async (route) => {
      const isDeletion = route.request().method() === 'DELETE';
      if (isDeletion) await answered.promise;
      if (isDeletion || now !== 'gone') return route.fulfill({ json: now === 'gone' ? vm : now });
      return route.fulfill({ status: 404, json: { status: 404, code: 'not_found', detail: 'No such VM.' } });
    });
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}`);
    const dialog = page.getByRole('dialog');
    const isSeen = async (state: typeof now, sign: string) => {
      now = state;
      await showAgain(page);
      await page.getByText(sign, { exact: true }).first().waitFor();
    };
    const open = async (opener: string) => {
      now = vm;
      await goTo(page, `/teams/${team.id}/volumes`);
      await goTo(page, `/teams/${team.id}/vms/v1`);
      await showAgain(page);
      await page.getByRole('button', { name: opener }).click();
      await dialog.waitFor();
    };
    await open('Stop');
    await isSeen({ ...vm, status: 'stopped' }, 'stopped');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Start' }).waitFor();
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    // The answer comes after what was deleted was read again.
    await open('Delete');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await isSeen('gone', 'This was not found');
    answered.resolve();
    await page.waitForURL((url) => url.pathname === `/teams/${team.id}/vms`);
    await open('Delete');
    await isSeen({ ...vm, status: 'stopping', deleted_at: at }, 'stopping');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL((url) => url.pathname === `/teams/${team.id}/vms`);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says in an open dialog what its button does to the thing as it is by now', async () => {
    const { team, keys } = await createTeam('Current');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    let isLater = false;
    const all = (row: object) => ({ json: { data: [row], pagination: { page: 0, limit: 100, total: 1 } } });
    const host = {
      ...{ instance_id: 'h1', name: 'forge', team_id: team.id, region_id: null, specs: {}, host_specs: null },
      ...{ reason: null, error: null, attempts: [], keys_stale: false, unreachable_since: null },
      ...{ created_at: at, active_since: null, ended_at: null },
    };
    const ada = {
      ...{ user_id: 'u1', name: 'Ada', email: 'ada@example.com', role: 'member', status: 'active' },
      ...{ expiry_date: null, ip_whitelist: '' },
    };
    await page.route('**/api/baremetal?*', (route) =>
      route.fulfill(all({ ...host, status: isLater ? 'Active' : 'Requested' })),
    );
    await page.route('**/api/team/*/members?*', (route) =>
      route.fulfill(all({ ...ada, api_token: isLater, api_key: isLater ? 'atoll_…1a2b' : null })),
    );
    await page.route('**/api/gpuaas/pool-subscription?*', (route) =>
      route.fulfill(all({ ...subscription, vgpus_allocated: isLater ? 8 : 1 })),
    );
    await page.route('**/pool-subscription/*/utilization?*', (route) => route.fulfill({ json: { points: [] } }));
    await page.route('**/api/shared-volumes?*', (route) =>
      route.fulfill(all({ ...volumeOf('models'), status: 'active', size_in_gb: isLater ? 80 : 10 })),
    );
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/vms`);
    const dialog = page.getByRole('dialog');
    for (const [path, opener, before, after] of [
      ['baremetal', 'Cancel', '“forge” is no longer wanted?', 'What “forge” has on its disks is removed.'],
      ['members', 'Issue a key', 'Issue a key of Ada', 'The old key ends'],
      ['subscriptions', 'Resize', '; 1 now.', '; 8 now.'],
      ['volumes', 'Resize', 'It has 10 GB', 'It has 80 GB'],
    ] as const) {
      isLater = false;
      await goTo(page, `/teams/${team.id}/${path}`);
      await page.getByRole('button', { name: opener }).first().click();
      await dialog.getByText(before).waitFor();
      isLater = true;
      await showAgain(page);
      await dialog.getByText(after).waitFor();
      await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('offers a region as soon as the operator has made the first pool in it', async () => {
    const { team } = await createTeam('First');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    let isMade = false;
    const all = (data: unknown[]) => ({ json: { data, pagination: { page: 1, limit: 100, total: data.length } } });
    const region = { region_id: '1', region_name: 'north', city: null };
    const gpu = { gpu_id: '1', board: 'A100-80GB', pool_id: null, transition: null };
    const node = { node_id: '1', node_name: 'n1', gpuaas_id: '1', status: 'ready', gpus: [gpu] };
    await page.route('**/api/gpuaas/available-regions?*', (route) => route.fulfill(all(isMade ? [region] : [])));
    await page.route('**/api/gpuaas/node?*', (route) => route.fulfill(all([node])));
    await page.route('**/api/gpuaas/all-pools?*', (route) => route.fulfill(all([])));
    await page.route('**/api/gpuaas/pool/create', (route) => {
      isMade = true;
      return route.fulfill({ status: 201, json: { pool_id: '1' } });
    });
    await logInWithKey(page, adminKey, `/teams/${team.id}/volumes`);
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Create a volume' }).click();
    await dialog.getByRole('heading', { name: /no region/i }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await goTo(page, '/operator/pools');
    await page.getByRole('button', { name: 'Create a pool' }).click();
    await dialog.getByLabel('Name').fill('a100');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.waitFor({ state: 'detached' });
    await goTo(page, `/teams/${team.id}/volumes`);
    await page.getByRole('button', { name: 'Create a volume' }).click();
    await dialog.getByRole('button', { name: 'north Region' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says what is on, chosen and meant by which colour where the system forces colours of its own', async () => {
    const { team, keys } = await createTeam('Contrast');
    const tab = await openTab(platformUrl, { forcedColors: 'active', viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, keys.team_owner ?? '', `/teams/${team.id}/pods`);
    const ground = (selector: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll('${selector}')].map((part) => getComputedStyle(part).backgroundColor)`,
      );
    const [off] = await ground('.switch-track');
    await page.getByText('Show what has ended').click();
    await page.getByRole('switch', { name: 'Show what has ended', checked: true }).waitFor();
    expect(await ground('.switch-track')).not.toEqual([off]);
    expect(new Set(await ground('.segment')).size).toBe(2);
    expect(new Set(await ground('.side nav .side-link')).size).toBe(2);
    await goTo(page, `/teams/${team.id}/pools`);
    await page.getByText('another team’s').waitFor();
    const [inUse, , , others, free] = await ground('.legend .swatch');
    expect(new Set([inUse, others, free]).size).toBe(3);
    await page.getByRole('button', { name: 'Use over' }).click();
    await page.getByRole('option').first().waitFor();
    expect(new Set(await ground('[role=option]')).size).toBe(2);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
