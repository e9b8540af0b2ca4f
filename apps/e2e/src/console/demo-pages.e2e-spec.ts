import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { succeed, until } from '../client.js';
import { browserLack, closeBrowser, logInWithKey, openBrowser, openTab, picture } from './browser.js';
import { startDemo, type DemoPlatform } from './demo.js';

const longMs = 180_000;

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
  }, longMs);
  afterAll(async () => {
    await closeBrowser();
    await demo.platform.stop();
  });

  it(
    'has something true to say on every page, to each of its teams and to the operator',
    async () => {
      const silent: string[] = [];
      for (const [who, key] of [...Object.entries(demo.keys), ['operator', demo.platform.adminKey] as const]) {
        const tab = await openTab(demo.platform.url, { viewport: { width: 1440, height: 900 } });
        await logInWithKey(tab.page, key);
        await tab.page.locator('.side a').first().waitFor();
        const links = await Promise.all((await tab.page.locator('.side a').all()).map((link) => link.getAttribute('href')));
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
          const titles = await tab.page.locator('.empty h3, .problem strong').allTextContents();
          silent.push(
            ...titles.filter((title) => !allowed.has(title)).map((title) => `${who} ${path.replace(/[0-9a-f-]{36}/, '')}: ${title}`),
          );
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
    },
    longMs,
  );

  it('leaves nothing without a price but what is a trial', async () => {
    const { data } = await succeed<{ data: { id: string; name: string }[] }>('GET', '/team', {
      url: demo.platform.url,
      key: demo.platform.adminKey,
    });
    expect(data.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(demo.keys)));
    const to = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const from = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const unpriced: string[] = [];
    for (const { id, name } of data) {
      const path = `/team-billing/${id}/${from}T00:00:00/${to}T00:00:00/daily/utc`;
      const bill = await succeed<{ unpriced: { sku: string }[] }>('GET', path, { url: demo.platform.url, key: demo.platform.adminKey });
      unpriced.push(...bill.unpriced.map(({ sku }) => `${name}: ${sku}`));
    }
    expect(unpriced).toEqual(['Ledger Analytics: gpu.A30-24GB.1g.6gb']);
  });
});
