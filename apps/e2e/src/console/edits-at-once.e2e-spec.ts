import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { createTeam, platformUrl, succeed, underTest, until, type TeamView } from '../client.js';
import { subscriber } from '../subscriber.js';
import { browserLack, closeBrowser, logInWithKey, openBrowser, openTab, showAgain } from './browser.js';

describeWhere(browserLack(), 'a form in the console that was open while somebody else changed the same thing', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('takes nothing back of a team: a second factor that is required now stays required', async () => {
    const { team, keys } = await createTeam('Edited at once');
    const key = keys.team_owner ?? '';
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, key, `/teams/${team.id}/settings`);
    const edit = page.getByRole('region', { name: 'Team', exact: true }).getByRole('button', { name: 'Edit' });
    await edit.click();
    await dialog.getByLabel('Description').fill('What it is for');
    await succeed('PUT', `/team/${team.id}`, { key, body: { name: 'Another name', require_second_factor: true } });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('What it is for').waitFor();
    const read = () => succeed<TeamView>('GET', `/team/${team.id}`, { key });
    const changed = { name: 'Another name', description: 'What it is for', require_second_factor: true };
    expect(await read()).toMatchObject(changed);

    // Saved as it was opened, it changes nothing.
    await edit.click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await read()).toMatchObject(changed);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('makes no key that is good from anywhere where the one before it is bound to addresses now', async () => {
    const { team, keys, ids } = await createTeam('Keys at once', ['team_owner', 'viewer']);
    const key = keys.team_owner ?? '';
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    await logInWithKey(page, key, `/teams/${team.id}/members`);
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'viewer' }) });
    await row.getByRole('button', { name: 'Rotate' }).click();
    const path = `/team/${team.id}/members/${ids.viewer}/api-key`;
    await succeed('POST', path, { key, body: { ip_whitelist: '10.0.0.0/8' } });
    const again = page.waitForResponse((response) => response.url().includes('/members?'));
    await showAgain(page);
    await again;
    await page.getByRole('dialog').getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await row.getByText('10.0.0.0/8').waitFor();
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('takes nothing back of an exposed service, and leaves it its port where that was emptied', async () => {
    const own = await subscriber(underTest);
    const { key, teamId } = own.tenant;
    const { pod_name } = await own.create('server');
    await own.runs(pod_name);
    const { service_id } = await own.expose(pod_name);
    const active = async () => {
      const { body } = await until(
        () => own.service(service_id),
        ({ body: { status } }) => status === 'active',
      );
      return body;
    };
    const { url } = await active();
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, key, `/teams/${teamId}/pods/${pod_name}`);
    await page.getByRole('region', { name: 'Exposed services' }).getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('External port').fill('');
    await dialog.getByText('The port that it has now if left empty.').waitFor();
    await dialog.getByLabel('Name').fill('site');
    const body = { service_id, port: 9090 };
    await succeed('PUT', '/pods/update-exposed-service', { key, body });
    await active();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await active()).toMatchObject({ service_name: 'site', port: 9090, url });
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
