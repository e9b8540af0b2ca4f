import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page, Route } from 'playwright-core';
import { adminKey, createTeam, platformUrl, until, userKeyOf } from '../client.js';
import { createTenant } from '../gpu-inventory.js';
import {
  browserLack,
  closeBrowser,
  goTo,
  logInWithKey,
  logInWithPassword,
  openBrowser,
  openTab,
  picture,
  violations,
} from './browser.js';

const id = '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10';
const ofTeam = [
  ...[
    '',
    '/billing',
    '/billing/compare',
    '/pools',
    '/subscriptions',
    '/pods',
    '/pods/a-pod',
    '/pods/a-pod/terminal',
    '/logs',
    '/vms',
  ],
  ...[`/vms/${id}`, '/volumes', '/baremetal', '/members', '/settings'],
];
const ofOperator = [
  ...[
    'machines',
    'machines/pods/pod',
    'dead-letters',
    'regions',
    'clusters',
    'nodes',
    'nodes/1',
    'pools',
    'subscriptions',
    'baremetal',
  ],
  ...['flavours', 'prices', 'policies', 'teams'],
];

const details = {
  403: { code: 'forbidden', detail: 'Only an owner may read this.' },
  404: { code: 'not_found', detail: 'There is no such thing.' },
  429: { code: 'too_many_requests', detail: 'Too many requests. Please try again later.' },
  500: { code: 'internal', detail: 'An internal error occurred.' },
  503: { code: 'unavailable', detail: 'The service is not available.' },
} as const;
type Status = keyof typeof details;

describeWhere(browserLack(), 'when the platform fails, the console', () => {
  let pages: string[];
  beforeAll(async () => {
    await openBrowser();
    const { teamId } = await createTenant('Faults', ['team_owner']);
    pages = [
      ...ofTeam.map((path) => `/teams/${teamId}${path}`),
      ...ofOperator.map((path) => `/operator/${path}`),
      '/profile/ssh-keys',
    ];
  });
  afterAll(closeBrowser);

  const refuse = (status: Status) => (route: Route) => {
    const { code, detail } = details[status];
    const { pathname } = new URL(route.request().url());
    if (pathname === '/api/user/profile') return route.continue();
    const body = {
      type: 'about:blank',
      title: 'Refused',
      status,
      detail,
      instance: pathname,
      code,
      request_id: 'req-outside-test',
    };
    return route.fulfill({
      status,
      headers: {
        'content-type': 'application/problem+json',
        ...((status === 429 || status === 503) && { 'retry-after': '3600' }),
      },
      body: JSON.stringify({ ...body, message: detail, statusCode: status }),
    });
  };

  /** What is shown after it is of this page, and not of the one before. */
  const open = async (page: Page, path: string): Promise<void> => {
    const before = await page.title();
    await goTo(page, path);
    await until(
      () => page.title(),
      (title) => title !== before,
    );
  };

  it.each([403, 404, 429, 500, 503] as const)(
    'shows the detail of a %s, and the id of the request, on every page, without waiting for its own next try',
    async (status) => {
      const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
      await logInWithKey(tab.page, adminKey, '/profile');
      await tab.page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
      await tab.page.route('**/api/**', refuse(status));
      const silent: string[] = [];
      for (const path of pages) {
        await open(tab.page, path);
        const note = tab.page.getByRole('alert').first();
        const text = await note.innerText().catch(() => '');
        if (!text.includes(details[status].detail) || !text.includes('req-outside-test'))
          silent.push(`${path}: ${text}`);
      }
      expect(silent).toEqual([]);
      expect(await violations(tab.page)).toEqual([]);
      await picture(tab.page, `story-fault-${status}`);
      expect(tab.faults).toEqual([]);
      await tab.close();
    },
  );

  it('asks at once where its reader says so, however long the platform asked it to wait', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/profile');
    await page.route('**/api/price*', refuse(503));
    await goTo(page, '/operator/prices');
    const note = page.getByRole('alert').first();
    await note.getByText(details[503].detail).waitFor();
    await page.unroute('**/api/price*');
    await note.getByRole('button', { name: 'Try again' }).click();
    await note.waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  /** More calls than are made in a row, before the page says that it tries again. */
  const inOneRow = 4;

  it('asks again by itself for what is read once, and for the profile without which there is no page', async () => {
    const { team } = await createTeam('Patient');
    const email = team.members[0]?.email ?? '';
    await userKeyOf(email);
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithPassword(page, email, 'correct horse battery staple', '/profile');
    for (const [path, call, what] of [
      [`/teams/${team.id}/members`, '**/members?*', page.getByRole('region', { name: 'Members' })],
      ['/profile', '**/api/user/profile', page.getByRole('heading', { level: 1, name: 'Your profile' })],
    ] as const) {
      let calls = 0;
      await page.route(call, (route) => {
        calls += 1;
        return route.fulfill({ status: 503, json: details[503] });
      });
      await page.goto(path);
      const note = page.getByRole('alert').first();
      await note.getByText('This page tries again by itself.').waitFor();
      // Whoever is about to press its button has it in hand, however often the page asks.
      await note.getByRole('button', { name: 'Try again' }).focus();
      await until(
        () => Promise.resolve(calls),
        (made) => made > inOneRow,
      );
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Try again');
      await page.unroute(call);
      await what.waitFor();
      await note.waitFor({ state: 'detached' });
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('lets a dialog be closed that cannot read what it needs', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/operator/pools');
    await page.route('**/api/gpuaas/node*', refuse(500));
    await page.getByRole('button', { name: 'Create a pool' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(details[500].detail).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('says that there is no network on every page, and goes on by itself when there is one again', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/profile');
    // Their scripts are here before the network goes, but for the last one.
    for (const path of pages.slice(0, -1)) await open(page, path);
    await open(page, '/profile');
    // What was read within the last 2 s is fresh, and not asked for when a page opens.
    await delay(2_000);
    await page.context().setOffline(true);
    const silent: string[] = [];
    for (const path of pages) {
      const asked = `${path}?ended=yes&window=last_30d&page=2`;
      await (path === pages.at(-1) ? goTo(page, asked) : open(page, asked));
      const note = page.getByText('No connection').first();
      await note.waitFor().catch(() => silent.push(path));
    }
    await picture(page, 'story-offline');
    expect(silent).toEqual([]);
    let failed = 0;
    page.on('requestfailed', (request) => (failed += request.url().includes('/members?') ? 1 : 0));
    await goTo(page, `${pages[0]}/members?page=3`);
    await until(
      () => Promise.resolve(failed),
      (calls) => calls >= inOneRow,
    );
    await page.context().setOffline(false);
    await page.getByRole('region', { name: 'Members' }).waitFor();
    await page.getByText('No connection').first().waitFor({ state: 'detached' });
    // What the router says of the page whose script was out of reach.
    const told = /^lost: |^console: Problem: The platform cannot be reached\./;
    expect(tab.faults.filter((fault) => !told.test(fault))).toEqual([]);
    await tab.close();
  });

  it('asks for the script of a page once more where it was dropped on the way, and stays logged in', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/profile');
    let dropped = 0;
    await page.route('**/assets/prices-page-*.js', (route) =>
      dropped++ === 0 ? route.abort('internetdisconnected') : route.continue(),
    );
    await goTo(page, '/operator/prices');
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor();
    expect(dropped).toBeGreaterThan(1);
    expect(tab.faults).toEqual([expect.stringMatching(/^lost: .*prices-page-/)]);
    await tab.close();
  });

  it('leads to the log-in where the key is refused, and back to the same page after it', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/operator/prices');
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor();
    await page.route('**/api/**', (route) =>
      route.fulfill({ status: 401, contentType: 'application/problem+json', body: '{}' }),
    );
    await goTo(page, '/operator/nodes?window=last_7d');
    await page.getByText('Your session has ended. Log in again to go on where you were.').waitFor();
    await page.unroute('**/api/**');
    await page.getByRole('button', { name: 'Use an API key' }).click();
    await page.getByLabel('API key').fill(adminKey);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor();
    expect(new URL(page.url()).search).toBe('?window=last_7d');
    await tab.close();
  });
});
