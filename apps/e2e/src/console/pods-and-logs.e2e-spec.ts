import { generateKeyPairSync } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
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

describeWhere(browserLack(), 'pods and their logs in the console', () => {
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  let tab: Tab;
  beforeAll(async () => {
    await openBrowser();
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
    const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
    tenant = await createTenant('Log readers', ['team_owner', 'member', 'viewer']);
    const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 4, name: 'training' })).body;
    await tenant.subscribed(subscription_id);
    const volume = { team_id: tenant.teamId, region_id: node.regionId, name: 'results', size_in_gb: 10 };
    const { volume_id } = await succeed<{ volume_id: string }>('POST', '/shared-volumes', {
      key: tenant.keys.member,
      body: volume,
    });
    await until(
      () => succeed<{ status: string }>('GET', `/shared-volumes/${volume_id}`, { key: tenant.keys.member }),
      ({ status }) => status === 'active',
    );
  });
  beforeEach(async () => {
    tab = await openTab(platformUrl, {
      viewport: { width: 1440, height: 900 },
      permissions: ['clipboard-read', 'clipboard-write'],
    });
  });
  afterEach(async () => {
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
  afterAll(closeBrowser);

  const lines = () => tab.page.getByRole('region', { name: 'Log', exact: true });
  const rowCount = async () => Number(await lines().getByRole('table').getAttribute('aria-rowcount'));
  /** The rows that are drawn, by their texts. */
  const drawn = () => lines().locator('tbody tr:not([aria-hidden])');

  async function createPod(name: string): Promise<string> {
    const { page } = tab;
    await logInWithKey(page, tenant.keys.member ?? '', `/teams/${tenant.teamId}/pods`);
    await page.getByRole('button', { name: 'Create a pod' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a pod' });
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByLabel('Image').fill('docker.io/library/python:3.13');
    await dialog.getByLabel('Environment').fill('EPOCHS=10\nGREETING=a=b');
    await dialog.getByRole('button', { name: 'Shared volume' }).click();
    await page.getByRole('option', { name: 'results' }).click();
    await dialog.getByLabel('Path in the pod').fill('/results');
    await picture(page, 'story-create-pod');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.locator('.page-head').getByText('running', { exact: true }).waitFor();
    const podName = page.url().split('/').at(-1) ?? '';
    const pod = await succeed<{ volumes: object[] }>('GET', `/pods/${podName}`, { key: tenant.keys.member });
    expect(pod.volumes).toEqual([{ volume_id: expect.any(String), path: '/results' }]);
    return podName;
  }

  it('a pod is created, its log is followed as it is written, searched, and a link leads to one line of it', async () => {
    const { page } = tab;
    const podName = await createPod('trainer');
    // Nobody has looked it up before: the page does.
    await page.getByText(new RegExp(`^ssh -p \\d+ ${podName}@`)).waitFor();
    await picture(page, 'story-pod');
    await page.getByRole('link', { name: 'Logs' }).last().click();
    await page.getByRole('heading', { level: 1, name: 'Logs' }).waitFor();
    await drawn().filter({ hasText: 'torch.cuda.device_count' }).waitFor();
    const before = await rowCount();
    while ((await rowCount()) < before + 2) await page.waitForTimeout(100);

    await page.getByLabel('Lines that contain').fill('loss');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/[?&]q=loss/);
    // Until then the lines of before may still be drawn.
    await page.getByRole('heading', { name: 'Lines found' }).waitFor();
    await drawn().first().waitFor();
    for (const text of await drawn().allTextContents()) expect(text).toContain('loss');

    // By its text: the position of a line changes with each that is written.
    const message = (await drawn().last().locator('td').last().textContent()) ?? '';
    const chosen = drawn().filter({ hasText: message });
    const time = await chosen.getByRole('link').textContent();
    await chosen.getByRole('link').click();
    const selected = page.getByRole('region', { name: 'Selected line' });
    expect(await selected.locator('pre').textContent()).toBe(message);
    // Waited for from before the click: it is gone after 6 s.
    await Promise.all([
      page.getByText('The link was copied.').waitFor(),
      selected.getByRole('button', { name: 'Copy the link' }).click(),
    ]);
    await picture(page, 'story-logs');
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(new URL(link).searchParams.get('pod')).toBe(podName);

    const other = await openTab(platformUrl);
    await logInWithKey(other.page, tenant.keys.team_owner ?? '', link.slice(platformUrl.length));
    const there = other.page.locator('tr[aria-current]');
    expect([await there.getByRole('link').textContent(), await there.locator('td').last().textContent()]).toEqual([
      time,
      message,
    ]);
    expect(other.faults).toEqual([]);
    await other.close();

    const viewer = await openTab(platformUrl);
    await logInWithKey(viewer.page, tenant.keys.viewer ?? '', link.slice(platformUrl.length));
    await viewer.page.getByRole('alert').getByText('You may not do this').waitFor();
    await viewer.close();

    // Under the address of another team it is as one that is unknown, for those too who may see it.
    const stranger = await createTenant('Other teams');
    const elsewhere = `/teams/${stranger.teamId}/pods/${podName}`;
    const operator = await openTab(platformUrl);
    await logInWithKey(operator.page, adminKey, elsewhere);
    for (const [path, heading] of [
      [elsewhere, podName],
      [`${elsewhere}/terminal`, `Terminal in ${podName}`],
    ] as const) {
      await goTo(operator.page, path);
      await operator.page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
      await operator.page.getByRole('alert').getByText('This was not found').waitFor();
      expect(await operator.page.locator('.page-head button, .terminal-box').count()).toBe(0);
    }
    expect(operator.faults).toEqual([]);
    await operator.close();

    // Whoever deletes it on its own page is led away from there.
    await goTo(page, `/teams/${tenant.teamId}/pods/${podName}`);
    await page.locator('.page-head').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { level: 1, name: 'Pods' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/teams/${tenant.teamId}/pods`);
    await page.getByText('Show what has ended').click();
    const ended = page.getByRole('row').filter({ hasText: podName.replace(/-[^-]*$/, '') });
    await ended.getByText('deleted', { exact: true }).waitFor();
    expect(await ended.locator('a, button').count()).toBe(0);
  });

  it('a log of 10,000 lines is drawn by the rows in view alone, read back while it is scrolled, and stays where its reader is', async () => {
    const { page } = tab;
    const total = 12_000;
    const startMs = Date.parse('2026-11-01T00:00:00Z');
    await page.route('**/api/logs/pods?**', async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const limit = Number(query.get('limit'));
      const isBack = query.get('order') === 'desc';
      const until = query.get('until');
      const end = Number(query.get('cursor') ?? (until === null ? total : Date.parse(until) - startMs));
      const from = isBack ? Math.max(0, end - limit) : total;
      const numbers = Array.from({ length: isBack ? end - from : 0 }, (_, at) => end - 1 - at);
      const data = numbers.map((no) => ({
        timestamp: new Date(startMs + no).toISOString(),
        pod_name: 'trainer-abcde',
        container: 'main',
        stream: no % 50 === 0 ? 'stderr' : 'stdout',
        message: `line ${no} <b>&amp;</b> ${'x'.repeat(no % 200)}`,
        gpuaas_id: '1',
      }));
      await route.fulfill({ json: { data, next_cursor: isBack && from === 0 ? null : String(from) } });
    });
    await logInWithKey(page, tenant.keys.member ?? '', `/teams/${tenant.teamId}/logs?pod=trainer-abcde`);
    await drawn().filter({ hasText: 'line 11998 <b>' }).waitFor();
    const top = () =>
      drawn()
        .filter({ hasText: /line \d+/ })
        .nth(14)
        .locator('td')
        .last()
        .textContent();
    while ((await rowCount()) <= 10_000) {
      const count = await rowCount();
      await lines().evaluate((element) => (element as unknown as { scrollTo(at: object): void }).scrollTo({ top: 0 }));
      while ((await rowCount()) === count) await page.waitForTimeout(20);
      expect(await top()).toMatch(/^(?:stderr)?line \d+ <b>&amp;<\/b>/);
    }
    expect(await rowCount()).toBe(10_001);
    expect(await drawn().count()).toBeLessThan(100);
    await page.getByText('These are as many lines as fit.').waitFor();
    await page.getByRole('button', { name: 'Go to the newest line' }).click();
    await drawn().filter({ hasText: 'line 11998 <b>' }).waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    await picture(page, 'logs-of-10000-lines-360');
    await page.setViewportSize({ width: 1440, height: 900 });
    for (const theme of ['Light', 'Dark']) {
      await page.getByRole('radio', { name: theme }).click();
      expect(await violations(page)).toEqual([]);
      await picture(page, `logs-of-10000-lines-${theme}`);
    }
  });

  it('an SSH key is added, refused in the platform’s words where it is none, renamed and removed', async () => {
    const { page } = tab;
    await logInWithKey(page, adminKey, '/profile/ssh-keys');
    const row = page.getByRole('region', { name: 'SSH keys' }).getByRole('row').filter({ hasText: 'console-story' });
    const { publicKey } = generateKeyPairSync('ed25519');
    const { x = '' } = publicKey.export({ format: 'jwk' });
    const blob = Buffer.concat([
      Buffer.from('0000000b', 'hex'),
      Buffer.from('ssh-ed25519'),
      Buffer.from('00000020', 'hex'),
      Buffer.from(x, 'base64url'),
    ]);
    await page.getByRole('button', { name: 'Add a key' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add an SSH key' });
    await dialog.getByLabel('Public key').fill('-----BEGIN OPENSSH PRIVATE KEY-----');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.getByRole('alert').waitFor();
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    await dialog.getByLabel('Public key').fill(`ssh-ed25519 ${blob.toString('base64')} console-story\n`);
    await dialog.getByRole('button', { name: 'Add' }).click();
    await row.getByText('SHA256:').waitFor();
    await picture(page, 'story-ssh-keys');
    await row.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('console-story of a laptop');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await row.getByText('console-story of a laptop').waitFor();
    await row.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row.waitFor({ state: 'detached' });
    const { data } = await succeed<{ data: { name: string }[] }>('GET', '/user/ssh-key', { key: adminKey });
    expect(data.map(({ name }) => name)).not.toContain('console-story of a laptop');
  });
});
