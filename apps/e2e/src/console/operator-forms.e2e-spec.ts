import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { adminKey, fresh, platformUrl, succeed } from '../client.js';
import { browserLack, closeBrowser, logInWithKey, openBrowser, openTab } from './browser.js';

interface Image {
  id: string;
  name: string;
  reference: string;
}

describeWhere(browserLack(), 'a form of the operator in the console', () => {
  beforeAll(openBrowser);
  afterAll(closeBrowser);

  it('sets a price that applies at once by the clock of the platform, and once where its answer was lost', async () => {
    const sku = fresh('vm.clock');
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, adminKey, '/operator/prices');
    const hourMs = 3_600_000;
    await page.evaluate(`{ const now = Date.now.bind(Date); Date.now = () => now() + ${hourMs}; }`);
    await page.getByRole('button', { name: 'Set a price' }).click();
    await dialog.getByLabel('SKU').fill(sku);
    await dialog.getByLabel('Unit', { exact: true }).fill('vm');
    await dialog.getByLabel('Price of a unit and hour').fill('0.25');
    await page.route('**/api/price', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await dialog.getByRole('button', { name: 'Set the price' }).click();
    await dialog.getByText('No connection').waitFor();
    await page.unroute('**/api/price');
    await dialog.getByRole('button', { name: 'Set the price' }).click();
    await page.getByRole('region', { name: sku, exact: true }).waitFor();
    const { data } = await succeed<{ data: { valid_from: string }[] }>('GET', `/price?sku=${sku}`, { key: adminKey });
    expect(data).toHaveLength(1);
    expect(Math.abs(Date.parse(data[0]?.valid_from ?? '') - Date.now())).toBeLessThan(hourMs / 2);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });

  it('changes of an image policy what was changed in it alone: images keep their names', async () => {
    const name = fresh('NamedImages'.repeat(6));
    const objects = [
      { name: 'Training, with CUDA', reference: 'docker.io/library/python:3.13' },
      { name: 'Serving', reference: 'docker.io/library/node:26' },
    ];
    const policy = { name, description: 'Of the story', objects };
    const made = await succeed<{ id: string; objects: Image[] }>('POST', '/policy/image', {
      key: adminKey,
      body: policy,
    });
    const read = () => succeed<{ objects: Image[] }>('GET', `/policy/image/${made.id}`, { key: adminKey });
    const tab = await openTab(platformUrl, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await logInWithKey(page, adminKey, '/operator/policies');
    const card = page.getByRole('region', { name, exact: true });
    await card.waitFor();
    // Its name is one word, which is wider than a telephone.
    await page.setViewportSize({ width: 360, height: 740 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360);
    await page.setViewportSize({ width: 1440, height: 900 });
    const edit = async (label: string, change: (value: string) => string) => {
      await card.getByRole('button', { name: 'Edit' }).click();
      const field = dialog.getByLabel(label);
      await field.fill(change(await field.inputValue()));
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await edit('Description', () => 'Another description');
    await card.getByText('Another description').waitFor();
    expect((await read()).objects).toEqual(made.objects);
    await edit('Images', (value) => `${value}, ghcr.io/acme/tools:2`);
    await card.getByText('ghcr.io/acme/tools:2').waitFor();
    const names = (await read()).objects.map(({ name: own, reference }) => ({ name: own, reference }));
    expect(names).toEqual([...objects, { name: 'tools', reference: 'ghcr.io/acme/tools:2' }]);
    expect(tab.faults).toEqual([]);
    await tab.close();
  });
});
