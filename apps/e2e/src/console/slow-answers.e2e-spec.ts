import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import type { Page } from 'playwright-core';
import { adminKey, createTeam, platformUrl } from '../client.js';
import { browserLack, closeBrowser, goTo, holdCalls, logInWithKey, openBrowser, openTab } from './browser.js';

describeWhere(browserLack(), 'while an answer is under way, the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  /** A bill of each team and month: what the platform answers, with a total that tells them apart. */
  async function tellBillsApart(page: Page, totals: Record<string, string>): Promise<void> {
    await page.route('**/api/team-billing/**', async (route) => {
      const response = await route.fetch();
      const report = (await response.json()) as object;
      const of = Object.keys(totals).find((part) => route.request().url().includes(part)) ?? '';
      await route.fulfill({ response, json: { ...report, total_cost: totals[of] } });
    });
  }

  it('shows and exports no bill of another range or team under the new headings', async () => {
    const [ours, theirs] = [await createTeam('Ours'), await createTeam('Theirs')];
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const total = page.getByTestId('total');
    const csv = page.getByRole('button', { name: 'Download CSV' });
    await logInWithKey(page, adminKey, '/profile');
    await tellBillsApart(page, {
      [`${ours.team.id}/2026-01-01`]: '1',
      [`${ours.team.id}/2025-12-01`]: '2',
      [`${theirs.team.id}/2025-12-01`]: '3',
    });
    await goTo(page, `/teams/${ours.team.id}/billing?from=2026-01-01&to=2026-01-31`);
    await total.getByText('$1.00').waitFor();
    for (const [path, shown] of [
      [`/teams/${ours.team.id}/billing?from=2025-12-01&to=2025-12-31`, '$2.00'],
      [`/teams/${theirs.team.id}/billing?from=2025-12-01&to=2025-12-31`, '$3.00'],
    ] as const) {
      const answer = await holdCalls(page, `**/api/team-billing/${path.split('/')[2]}/2025-12-01*/**`);
      await goTo(page, path);
      await answer.held;
      await page.getByRole('status').getByText('Loading').waitFor({ state: 'attached' });
      expect([await total.count(), await csv.isDisabled()]).toEqual([0, true]);
      answer.letGo();
      await total.getByText(shown).waitFor();
      expect(await csv.isDisabled()).toBe(false);
    }
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('moves no field and no button of the log-in when it learns by what else people can log in', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const ways = await holdCalls(page, '**/api/user/sso');
    await page.goto('/sign-in');
    await ways.held;
    const parts = [
      page.getByLabel('E-mail'),
      ...['Log in with a passkey', 'Use an API key'].map((name) => page.getByRole('button', { name })),
    ];
    const places = async () => Promise.all(parts.map((part) => part.boundingBox()));
    const before = await places();
    ways.letGo();
    await page.getByText('Lost your password?').waitFor();
    expect(before).not.toContain(null);
    expect(await places()).toEqual(before);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('shows no process of another machine or kind, no dead letter of another service and no other page of keys', async () => {
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, adminKey, '/profile');
    const row = { entered_at: '2026-11-22T12:00:00.000Z', error: null, lane: '', request_id: null };
    const process = { ...row, attempts: 1, next_try_at: null, deadline_at: null };
    await page.route('**/api/operator/machines/pods/pod?*', (route) => {
      const kind = new URL(route.request().url()).searchParams.get('kind') ?? '';
      const pagination = { page: 1, limit: 20, total: kind === 'failed' ? 45 : 65 };
      return route.fulfill({ json: { data: [{ ...process, key: `a ${kind} pod`, state: kind, kind }], pagination } });
    });
    await goTo(page, '/operator/machines/pods/pod');
    await page.getByText('a failed pod').waitFor();
    await page.getByText('Page 1 of 3, 45 in all').waitFor();
    const processes = await holdCalls(page, '**/api/operator/machines/pods/pod?*kind=waiting*');
    await page.getByRole('radio', { name: 'Waiting' }).click();
    await processes.held;
    await page.locator('.skeleton').waitFor();
    expect(await page.getByText(/a failed pod|45 in all/).count()).toBe(0);
    processes.letGo();
    await page.getByText('a waiting pod').waitFor();
    await page.getByText('Page 1 of 4, 65 in all').waitFor();

    const letter = { event_name: 'teams.team_changed', occurred_at: row.entered_at, consumer: 'team-directory' };
    const failure = { tries: 1, last_failed_at: row.entered_at, replay_requested_at: null };
    await page.route('**/api/operator/dead-letters?*', (route) => {
      const service = new URL(route.request().url()).searchParams.get('service') ?? 'gpuaas';
      const data = [{ ...letter, ...failure, dead_letter_id: service, service, error: `disk of ${service} is full` }];
      return route.fulfill({ json: { data, next_cursor: null, services: [] } });
    });
    await goTo(page, '/operator/dead-letters');
    await page.getByText('disk of gpuaas is full').waitFor();
    const letters = await holdCalls(page, '**/api/operator/dead-letters?*service=billing*');
    await page.getByRole('button', { name: 'Service' }).click();
    await page.getByRole('option', { name: 'billing', exact: true }).click();
    await letters.held;
    await page.locator('.skeleton').waitFor();
    expect(await page.getByText('disk of gpuaas is full').count()).toBe(0);
    letters.letGo();
    await page.getByText('disk of billing is full').waitFor();

    const key = { type: 'ssh-ed25519', fingerprint: 'SHA256:x', created_at: row.entered_at };
    await page.route('**/api/user/ssh-key?*', (route) => {
      const at = Number(new URL(route.request().url()).searchParams.get('page'));
      const data = [{ ...key, ssh_key_id: String(at), name: `key ${at}` }];
      return route.fulfill({ json: { data, pagination: { page: at, limit: 20, total: 21 } } });
    });
    await goTo(page, '/profile/ssh-keys');
    await page.getByText('key 1', { exact: true }).waitFor();
    const keys = await holdCalls(page, '**/api/user/ssh-key?*page=2*');
    await page.getByRole('button', { name: 'Next' }).click();
    await keys.held;
    await page.locator('.skeleton').waitFor();
    expect(await page.getByText('key 1', { exact: true }).count()).toBe(0);
    keys.letGo();
    await page.getByText('key 2', { exact: true }).waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
