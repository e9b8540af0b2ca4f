import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { call, succeed, until } from '../client.js';
import { browserLack, closeBrowser, goTo, logInWithKey, openBrowser, openTab, picture, type Tab } from './browser.js';
import { startDemo, type DemoPlatform } from './demo.js';

/** What is truly empty in the demo. */
const allowed: ReadonlySet<string> = new Set([
  'There is no dead letter',
  // Of a team of which nothing has failed.
  'Nothing needs you',
  // The default policy lists none, and allows all.
  'No image is listed',
  'Every image is allowed',
  // The operator is a member of nothing.
  'You are in no team',
  'You have no SSH key here',
]);

describeWhere(browserLack(), 'the demo', () => {
  let demo: DemoPlatform;
  beforeAll(async () => {
    demo = await startDemo();
    await openBrowser();
  });
  afterAll(async () => {
    await closeBrowser();
    await demo.platform.stop();
  });

  it('has something true to say on every page, to each of its teams and to the operator', async () => {
    const silent: string[] = [];
    for (const [who, key] of [...Object.entries(demo.keys), ['operator', demo.platform.adminKey] as const]) {
      const tab = await openTab(demo.platform.url, { viewport: { width: 1440, height: 900 } });
      await logInWithKey(tab.page, key);
      await tab.page.locator('.side a').first().waitFor();
      const links = await Promise.all(
        (await tab.page.locator('.side a').all()).map((link) => link.getAttribute('href')),
      );
      const paths = links.filter((link): link is string => link !== null && /^\/(?!api\/|$)/.test(link));
      expect(paths.length).toBeGreaterThan(8);
      for (const [at, path] of paths.entries()) {
        const [before, isElsewhere] = [await tab.page.title(), at > 0];
        await tab.page.locator(`.side a[href="${path}"]`).click();
        // The page before stays until this one is there.
        if (isElsewhere) {
          await until(
            () => tab.page.title(),
            (title) => title !== before,
          );
        }
        await tab.page.locator('.skeleton').first().waitFor({ state: 'detached' });
        const untrue = async () =>
          (await tab.page.locator('.empty h3, .problem strong').allTextContents()).filter(
            (title) => !allowed.has(title),
          );
        // What pods wrote is there some seconds after they run; the page asks again by itself.
        const left = await until(untrue, (titles) => titles.length === 0, 30_000).catch(untrue);
        silent.push(...left.map((title) => `${who} ${path.replace(/[0-9a-f-]{36}/, '')}: ${title}`));
        await picture(
          tab.page,
          `demo-${who}-${path
            .split('/')
            .slice(-2)
            .join('-')
            .replace(/[0-9a-f-]{36}/, 'team')}`,
        );
      }
      expect(tab.faults).toEqual([]);
      await tab.close();
    }
    expect(silent).toEqual([]);
  });

  it('leaves nothing without a price but what is a trial', async () => {
    const { data } = await succeed<{ data: { id: string; name: string }[] }>('GET', '/team', {
      url: demo.platform.url,
      key: demo.platform.adminKey,
    });
    expect(data.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(demo.keys)));
    const to = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const from = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const unpriced = async () => {
      const found: string[] = [];
      for (const { id, name } of data) {
        const path = `/team-billing/${id}/${from}T00:00:00/${to}T00:00:00/daily/utc`;
        const bill = await succeed<{ unpriced: { sku: string }[] }>('GET', path, {
          url: demo.platform.url,
          key: demo.platform.adminKey,
        });
        found.push(...bill.unpriced.map(({ sku }) => `${name}: ${sku}`));
      }
      return found;
    };
    // Billing may hear of the last subscription after it runs.
    expect(await until(unpriced, (found) => found.length > 0)).toEqual(['Ledger Analytics: gpu.A30-24GB.1g.6gb']);
  });

  // After the other stories, which read what it changes.
  describe('a working day in it', () => {
    let tab: Tab;
    beforeEach(async () => {
      tab = await openTab(demo.platform.url, { viewport: { width: 1440, height: 900 } });
    });
    afterEach(async () => {
      expect(tab.faults).toEqual([]);
      await tab.close();
    });

    const follow = (name: string) =>
      tab.page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
    const cents = (text: string | null) => Math.round(Number((text ?? '').replace(/[^\d.-]/g, '')) * 100);

    it('a bill is one total, in the figure, in each table, in the file and over the API', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.keys['Protein Lab'] ?? '');
      await follow('Billing');
      await page.getByRole('button', { name: 'Range' }).click();
      await page.getByRole('option', { name: 'Last month' }).click();
      await page.waitForURL(/from=\d{4}-\d\d-01&to=/);
      await page.getByRole('button', { name: 'Group by' }).click();
      await page.getByRole('option', { name: 'Workspace' }).click();
      await page.waitForURL(/by=workspace/);
      const table = page.getByRole('region', { name: 'Cost by what it was for' });
      await table.getByRole('rowheader', { name: 'folding' }).waitFor();
      const total = cents(await page.getByTestId('total').textContent());
      expect(total).toBeGreaterThan(0);
      for (const region of [table, page.getByRole('region', { name: 'Cost by interval' })]) {
        const foot = cents(await region.locator('tfoot td').last().textContent());
        expect(foot).toBe(total);
      }
      const cells = await table.locator('tbody td:last-child').allTextContents();
      expect(cells.map(cents).reduce((all, cell) => all + cell, 0)).toBe(total);

      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download CSV' }).click(),
      ]);
      const stream = await file.createReadStream();
      let csv = '';
      for await (const chunk of stream) csv += String(chunk);
      const exact = csv.trim().split('\r\n').at(-1)?.split(',').at(-1) ?? '';
      const { searchParams, pathname } = new URL(page.url());
      const until = new Date(Date.parse(searchParams.get('to') ?? '') + 86_400_000).toISOString().slice(0, 10);
      const path = `/team-billing/${pathname.split('/')[2] ?? ''}/${searchParams.get('from') ?? ''}T00:00:00/${until}T00:00:00/monthly/local`;
      const report = await succeed<{ total_cost: string }>('GET', path, {
        url: demo.platform.url,
        key: demo.keys['Protein Lab'],
      });
      expect(exact).toBe(report.total_cost);
      expect(cents(exact)).toBe(total);
      await picture(page, 'story-bill');
    });

    it('a bill on paper is light, whole, and says whose it is', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.keys['Protein Lab'] ?? '');
      await page.getByRole('radio', { name: 'Dark' }).click();
      await follow('Billing');
      await page.getByLabel('Last day').waitFor();
      const { pathname } = new URL(page.url());
      const [from, to] = [89, 0].map((days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10));
      await goTo(page, `${pathname}?from=${from}&to=${to}&interval=daily&zone=utc`);
      const table = page.getByRole('region', { name: 'Cost by interval' });
      await table.locator('table[aria-rowcount="92"]').waitFor();
      await page.emulateMedia({ media: 'print' });
      await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
      expect(await table.locator('tbody tr:not([aria-hidden])').count()).toBe(90);
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(255, 255, 255)');
      expect(await page.getByRole('button', { name: 'Log out' }).isVisible()).toBe(false);
      await page.getByText('What Protein Lab held').waitFor();
      const position = await page.evaluate(`getComputedStyle(document.querySelector('.long tfoot th')).position`);
      expect(position).toBe('static');
      await page.emulateMedia({ media: 'screen' });
      await page.evaluate(`dispatchEvent(new Event('afterprint'))`);
      await until(
        () => table.locator('tbody tr:not([aria-hidden])').count(),
        (count) => count < 90,
      );
    });

    it('two months are compared by price and by quantity', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.keys['Protein Lab'] ?? '');
      await follow('Compare months');
      const rows = page.getByRole('region', { name: 'Change item by item' }).getByRole('row');
      await rows.filter({ hasText: 'gpu.A100-80GB.3g.40gb' }).waitFor();
      // That price fell at the start of the month.
      const cells = await rows.filter({ hasText: 'gpu.A100-80GB.3g.40gb' }).getByRole('cell').allTextContents();
      expect(cents((cells.at(-1) ?? '').replace('−', '-'))).toBeLessThan(0);
      await picture(page, 'story-comparison');
    });

    it('a pool is subscribed until it is full, and what is refused says why and by which request', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.keys['Nimbus Robotics'] ?? '');
      await follow('GPU pools');
      const card = page.getByRole('region', { name: 'h100-large', exact: true });
      await card.getByRole('img').first().waitFor();
      const subscribe = async (vgpus: string) => {
        await card.getByRole('button', { name: 'Subscribe' }).click();
        const dialog = page.getByRole('dialog', { name: 'Subscribe to h100-large' });
        await dialog.getByLabel('vGPUs').fill(vgpus);
        await dialog.getByRole('button', { name: /Workspace/ }).click();
        await page.getByRole('option', { name: 'default', exact: true }).waitFor();
        expect(await page.getByRole('option', { name: 'Default', exact: true }).count()).toBe(0);
        await page.keyboard.press('Escape');
        await dialog.getByRole('button', { name: 'Subscribe' }).click();
        return dialog;
      };
      await subscribe('1');
      await page.waitForURL(/\/subscriptions$/);
      await page
        .getByRole('region', { name: 'Subscriptions' })
        .getByRole('row')
        .filter({ hasText: 'h100-large' })
        .nth(2)
        .waitFor();
      await page.goBack();
      const dialog = await subscribe('1');
      const problem = dialog.getByRole('alert');
      await problem.waitFor();
      expect(await problem.textContent()).toMatch(/no capacity.*Request id [0-9a-f-]{36}/s);
      await picture(page, 'story-full');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      const ours = card.getByRole('img', { name: /3g\.40gb .* by subscription \d+/ });
      await ours.first().waitFor();
      expect(
        await page
          .getByRole('region', { name: 'a100-slices', exact: true })
          .getByRole('img')
          .first()
          .getAttribute('aria-label'),
      ).toMatch(/held by another team/);
    });

    it('an operator sees what failed and where, suspends a team and lets it go on', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.platform.adminKey);
      await follow('Nodes');
      const failed = page.getByRole('region', { name: /init-refuse/ });
      await failed.getByText('init failed').waitFor();
      expect(await failed.textContent()).toContain('refused');
      await page
        .getByRole('img', { name: /Temporal: \d of \d+ slots held/ })
        .first()
        .waitFor();
      await picture(page, 'story-nodes');

      await follow('Teams');
      const row = page.getByRole('row').filter({ hasText: 'Ledger Analytics' });
      await row.getByRole('button', { name: 'Suspend' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
      await row.getByText('suspended').waitFor();
      const refused = await call<{ code: string }>('POST', '/workspace', {
        url: demo.platform.url,
        key: demo.keys['Ledger Analytics'],
        body: { team_id: (await row.getByRole('link').getAttribute('href'))?.split('/').at(-1), name: 'x' },
      });
      expect(refused.body.code).toBe('team_suspended');
      await row.getByRole('button', { name: 'Unsuspend' }).click();
      await row.getByText('active').waitFor();
    });

    it('the palette goes everywhere by the keyboard alone, and logging out leaves nothing to go back to', async () => {
      const { page } = tab;
      await logInWithKey(page, demo.keys['Nimbus Robotics'] ?? '');
      await page.getByRole('heading', { level: 1, name: 'Nimbus Robotics' }).waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('members');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'Members and keys' }).waitFor();
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByText('You are logged out.').waitFor();
      await page.goBack();
      await page.getByRole('heading', { name: 'Log in to Atoll' }).waitFor();
      expect(await page.content()).not.toContain('sofia@nimbus.example');
    });
  });
});
