import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { call, platformUrl, succeed, until } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import {
  browserLack,
  closeBrowser,
  logInWithKey,
  openBrowser,
  openTab,
  picture,
  showAgain,
  violations,
  type Tab,
} from './browser.js';

describeWhere(browserLack(), 'a terminal in the console', () => {
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  let podName: string;
  let tab: Tab;
  beforeAll(async () => {
    await openBrowser();
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
    const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
    tenant = await createTenant('Terminal users', ['team_owner', 'member', 'viewer']);
    const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body;
    const body = { team_id: tenant.teamId, subscription_id, name: 'workbench', image: 'python:3.13' };
    ({ pod_name: podName } = await succeed<{ pod_name: string }>('POST', '/pods', { key: tenant.keys.member, body }));
    await until(
      () => succeed<{ status: string }>('GET', `/pods/${podName}`, { key: tenant.keys.member }),
      ({ status }) => status === 'running',
    );
  });
  beforeEach(async () => {
    tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
  });
  afterEach(async () => {
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
  afterAll(closeBrowser);

  const path = () => `/teams/${tenant.teamId}/pods/${podName}`;
  const row = (text: string | RegExp) => tab.page.locator('.xterm-rows > div').filter({ hasText: text });
  const isReady = () => tab.page.locator('.terminal-box .xterm.focus').waitFor();

  it('is a shell in the pod, in the size of the page, which ends with `exit` and is opened again', async () => {
    const { page } = tab;
    await logInWithKey(page, tenant.keys.member ?? '', path());
    await page.getByRole('link', { name: 'Terminal' }).click();
    await isReady();
    await page.keyboard.type('echo one-two\n');
    await row(/^one-two/).waitFor();
    await page.keyboard.type('nvidia-smi -L\n');
    await row(/GPU 0/).first().waitFor();
    await picture(page, 'story-terminal');
    for (const theme of ['Dark', 'Light']) {
      await page.getByRole('radio', { name: theme }).click();
      expect(await violations(page)).toEqual([]);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await picture(page, 'story-terminal-360');
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.locator('.terminal-box').click();
    await page.keyboard.press('Control+Shift+E');
    expect(await page.evaluate('document.activeElement.id')).toBe('leave-terminal');
    await page.locator('.terminal-box').click();
    await page.keyboard.type('exit\n');
    await page.getByText(/The shell ended with code \d+\./).waitFor();
    await page.getByRole('button', { name: 'Open another' }).click();
    // The terminal of the shell that ended has the focus until the new one takes its place.
    await page.getByText(/The shell ended with code \d+\./).waitFor({ state: 'detached' });
    await isReady();
    await page.keyboard.type('echo three-four\n');
    await row(/^three-four/).waitFor();
    // What was written can still be read and copied when the pod is gone.
    await page.keyboard.type('exit\n');
    await page.getByRole('button', { name: 'Open another' }).waitFor();
    const gone = { status: 404, code: 'not_found', detail: 'No such pod.' };
    await page.route(`**/api/pods/${podName}`, (route) => route.fulfill({ status: 404, json: gone }));
    await showAgain(page);
    await page.getByText('This was not found').waitFor();
    await row(/^three-four/).waitFor();
    expect(await page.getByRole('button', { name: 'Open another' }).count()).toBe(0);
  });

  it('ends at once for a member who is removed, and says why', async () => {
    const { page } = tab;
    const member = await succeed<{ user_id: string; api_key: string }>('POST', `/team/${tenant.teamId}/members`, {
      key: tenant.keys.team_owner,
      body: { email: `leaver-${podName}@example.com`, name: 'Leaver', role: 'member' },
    });
    await logInWithKey(page, member.api_key, `${path()}/terminal`);
    await isReady();
    const removed = await call('DELETE', `/team/${tenant.teamId}/members/${member.user_id}`, {
      key: tenant.keys.team_owner,
    });
    expect(removed.status).toBeLessThan(300);
    await page
      .getByText(/You may no longer use the pods of this team\.|Log in to Atoll/)
      .first()
      .waitFor();
  });

  it('ends at once when the key that opened it is rotated or revoked, though another key of the same person lives on, and says why', async () => {
    const { page } = tab;
    const added = await succeed<{ user_id: string; api_key: string }>('POST', `/team/${tenant.teamId}/members`, {
      key: tenant.keys.team_owner,
      body: { email: `rotator-${podName}@example.com`, name: 'Rotator', role: 'member' },
    });
    const keyPath = `/team/${tenant.teamId}/members/${added.user_id}/api-key`;
    await logInWithKey(page, added.api_key, `${path()}/terminal`);
    await isReady();
    await succeed('POST', keyPath, { key: tenant.keys.team_owner, body: {} });
    const ended = page.getByText('The API key that opened this terminal has expired or was revoked.');
    await ended.or(page.getByText('Log in to Atoll')).first().waitFor();
  });

  it('is refused to a viewer and to another team in the platform’s words', async () => {
    const { page } = tab;
    await logInWithKey(page, tenant.keys.viewer ?? '', `${path()}/terminal`);
    await page.getByRole('alert').getByText('You may not do this').waitFor();
    const stranger = await createTenant('Terminal strangers');
    const body = { columns: 80, rows: 24 };
    const [foreign, unknown] = [
      await call<{ detail: string }>('POST', `/pods/${podName}/terminal`, { key: stranger.key, body }),
      await call<{ detail: string }>('POST', '/pods/no-such-pod/terminal', { key: stranger.key, body }),
    ];
    expect([foreign.status, foreign.body.detail]).toEqual([404, unknown.body.detail]);
  });
});
