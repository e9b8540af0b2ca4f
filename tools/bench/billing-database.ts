import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import type pg from 'pg';
import { generate, historyMonths, holdings, startOfMonth, type AskedTeam, type DataSize } from './billing-data.js';
import type { BillingDatabase } from './billing-reports.js';
import { createDatabase, dropDatabase, nameOf, urlOf } from './databases.js';
import { Installation } from './installation.js';
import { withClient } from './with-client.js';

/** What is written beside a database that is kept: all that is needed to use it again. */
type Kept = DataSize & Omit<BillingDatabase, 'url'>;

/** A database with its data, made now or kept from an earlier run with the same flags. */
export async function openBillingDatabase(
  serverUrl: string,
  name: string,
  folder: string,
  size: DataSize,
): Promise<BillingDatabase> {
  const url = urlOf(serverUrl, name);
  const record = join(folder, `${name}.json`);
  if (!existsSync(record)) {
    const made = await make(serverUrl, url, join(folder, name), size);
    const kept: Kept = { ...size, ...made };
    writeFileSync(record, JSON.stringify(kept), { mode: 0o600 });
  }
  const { teams, segmentsPerTeam, ...kept } = JSON.parse(readFileSync(record, 'utf8')) as Kept;
  if (teams !== size.teams || segmentsPerTeam !== size.segmentsPerTeam) {
    throw new Error(
      `The data in ${folder} is of ${teams} teams of ${segmentsPerTeam} segments: run with those, or keep it elsewhere.`,
    );
  }
  return { url, ...kept };
}

/** Works on a copy, so that data which is kept stays as it was made. */
export async function withCopy<T>(
  serverUrl: string,
  original: BillingDatabase,
  work: (copy: BillingDatabase) => Promise<T>,
): Promise<T> {
  const name = `${nameOf(original.url)}_copy`;
  const url = await createDatabase(serverUrl, name, nameOf(original.url));
  try {
    return await work({ ...original, url });
  } finally {
    await dropDatabase(serverUrl, name);
  }
}

/** Teams and prices come in by the API, all else by SQL. */
async function make(
  serverUrl: string,
  url: string,
  dataDir: string,
  size: DataSize,
): Promise<Omit<BillingDatabase, 'url'>> {
  await createDatabase(serverUrl, nameOf(url));
  const adminKey = createApiKey();
  const endMs = startOfMonth(Date.now());
  return withClient(url, async (client) => {
    const platform = await Installation.start(url, dataDir, adminKey);
    const asked = { old: await makeTeam(platform, client, 'Old'), young: await makeTeam(platform, client, 'Young') };
    await makePrices(platform, endMs, asked.old);
    await platform.stop();
    await generate(client, size, asked, endMs);
    return { adminKey, asked, endMs };
  });
}

async function makeTeam(platform: Installation, client: pg.Client, name: string): Promise<AskedTeam> {
  const { id } = await platform.send<{ id: string }>('POST', '/team', { name });
  for (let attempt = 0; attempt < 200; attempt++) {
    const { rows } = await client.query<{ no: number }>(`SELECT no FROM billing.team WHERE id = $1 AND revision > 0`, [
      id,
    ]);
    if (rows[0]) return { id, no: rows[0].no };
    await delay(50);
  }
  throw new Error('Billing was not told of a team.');
}

/**
 * Every SKU has a price from the start, another one every half year, and the old team one of its own in the last month.
 */
async function makePrices(platform: Installation, endMs: number, old: AskedTeam): Promise<void> {
  const price = (body: object) => platform.send('POST', '/price', { ...body, force: true });
  for (const { sku, unit } of holdings) {
    for (let back = historyMonths; back > 0; back -= 6) {
      const unit_price = `1.${String(back).padStart(2, '0')}7`;
      await price({ sku, unit, unit_price, valid_from: new Date(startOfMonth(endMs, back)).toISOString() });
    }
  }
  const [{ sku, unit }] = holdings;
  const middleOfMonthMs = (startOfMonth(endMs, 1) + endMs) / 2;
  await price({ sku, unit, unit_price: '0.95', valid_from: new Date(middleOfMonthMs).toISOString(), team_id: old.id });
}
