import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createDatabase, describeWhere, type TestDatabase } from '@atoll/testing';
import pg from 'pg';
import { call, createTeam, until, type Operated } from '../client.js';
import { createNode } from '../gpu-inventory.js';
import { startPlatform, type RunningPlatform, type Topology } from '../running-platform.js';
import { browserLack, closeBrowser, logInWithKey, openBrowser, openTab, picture, violations } from './browser.js';
import { isFit } from './fit.js';

describeWhere(browserLack(), 'an operator who looks for what went wrong', () => {
  let database: TestDatabase;
  let platform: RunningPlatform;
  let client: pg.Client;
  beforeAll(async () => {
    await openBrowser();
    database = await createDatabase();
    platform = await startPlatform((process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology, {
      DATABASE_URL: database.url,
    });
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await closeBrowser();
    await client?.end();
    await platform?.stop();
    await database?.drop();
  });

  it('finds a node that did not come up by its state and age, with the reason', async () => {
    const operated: Operated = { url: platform.url, adminKey: platform.adminKey };
    const node = await createNode({ name: 'gpu-07.init-refuse', platform: operated });
    await until(node.read, ({ status }) => status === 'init_failed');
    const tab = await openTab(platform.url, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, platform.adminKey);
    await page.getByRole('link', { name: 'What waits or failed' }).click();
    const failed = page.getByRole('region', { name: 'Failed' });
    await failed.getByRole('row').filter({ hasText: 'init failed' }).getByText('1', { exact: true }).first().waitFor();
    await isFit(page, 'machines');
    await page.route('**/api/operator/machines', async (route) => {
      const services = [
        { service: 'gpuaas', status: 'ok', detail: null },
        { service: 'pods', status: 'unavailable', detail: 'Nobody answers for pods.' },
      ];
      await route.fulfill({ json: { data: [], services } });
    });
    await page.getByText('The service pods does not respond').waitFor();
    await page.unroute('**/api/operator/machines');
    await failed.getByRole('link', { name: 'GPU nodes' }).click();
    await page.waitForURL(/machines\/gpuaas\/node\?state=init_failed/);
    await page
      .getByRole('region', { name: 'Processes' })
      .getByRole('link', { name: node.nodeId, exact: true })
      .waitFor();
    await isFit(page, 'processes');
    await page.getByRole('radio', { name: 'Waiting' }).click();
    await page.getByText('Nothing of it waits').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('replays a dead letter whose cause is mended, sees another fail again, and drops that one after a question', async () => {
    const deadLetter = (service: string, payload: object) =>
      client.query(
        `INSERT INTO ${service}.dead_letter (id, consumer, event_id, event_name, payload, occurred_at, last_error, tries, first_failed_at, last_failed_at)
           VALUES ($1, 'team-directory', $2, 'teams.team_changed', $3, now(), 'Error: could not extend file: No space left on device', 5, now(), now())`,
        [randomUUID(), randomUUID(), JSON.stringify(payload)],
      );
    await deadLetter('billing', {
      team_id: randomUUID(),
      revision: 1,
      name: 'Undelivered',
      is_suspended: false,
      status: 'active',
      workspaces: [],
    });
    await deadLetter('gpuaas', { name: '<b>no team</b>' });
    const tab = await openTab(platform.url, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, platform.adminKey);
    await page.getByRole('link', { name: 'Dead letters' }).click();
    const rowOf = (service: string) =>
      page.getByRole('region', { name: 'Dead letters' }).getByRole('row').filter({ hasText: service });
    await rowOf('billing').getByText('No space left on device').waitFor();
    await isFit(page, 'dead-letters');
    await rowOf('gpuaas').getByRole('button', { name: 'Show' }).click();
    await page.getByRole('dialog').getByText('<b>no team</b>').waitFor();
    expect(await violations(page, ['[aria-hidden="true"]'])).toEqual([]);
    await picture(page, 'story-dead-letter');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    for (const service of ['billing', 'gpuaas']) await rowOf(service).getByRole('button', { name: 'Replay' }).click();
    await rowOf('billing').waitFor({ state: 'detached' });
    await rowOf('gpuaas').getByText('6', { exact: true }).waitFor();
    await rowOf('gpuaas').getByRole('button', { name: 'Drop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drop' }).click();
    await page.getByText('There is no dead letter').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('is not a member of a team: that one is told that these pages are the operator’s', async () => {
    const team = await createTeam('Curious', ['team_owner'], { url: platform.url, adminKey: platform.adminKey });
    const tab = await openTab(platform.url);
    for (const path of ['/operator/machines', '/operator/dead-letters', '/operator/clusters']) {
      await logInWithKey(tab.page, team.keys.team_owner ?? '', path);
      await tab.page.getByRole('alert').getByText('You may not do this').waitFor();
    }
    expect((await call('GET', '/operator/machines', { url: platform.url, key: team.keys.team_owner })).status).toBe(
      403,
    );
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
