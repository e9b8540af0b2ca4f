import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import type pg from 'pg';
import { generateSubscriptions, type ListingSize } from './gpuaas-data.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { StatementRecorder, type RecordedStatement } from './statement-recorder.js';
import { withClient } from './with-client.js';

const limit = 10;

export interface PageFigure {
  page: number;
  httpMs: number;
  /** The statement that finds the page. */
  pageSqlMs: number;
  /** With the one for what its subscriptions hold. */
  allSqlMs: number;
}

interface Listed {
  data: { subscription_id: string; metrics_status: string }[];
  pagination: { total: number };
}

const pathOf = (page: number) => `/gpuaas/pool-subscriptions/all?limit=${limit}&page=${page}`;

/**
 * Pages of the listing of all subscriptions, with metrics, over HTTP, and beside them the SQL that the product runs for
 * them; all in turn.
 */
export async function measureListing(
  url: string,
  folder: string,
  size: ListingSize,
  pages: readonly number[],
  rounds: number,
): Promise<PageFigure[]> {
  const adminKey = createApiKey();
  const recorded = await prepare(url, folder, adminKey, size, pages);
  const platform = await Installation.start(url, join(folder, 'listing'), adminKey);
  const medians = await withClient(url, async (client) => {
    await client.query('SET search_path TO gpuaas, public');
    await requireRightPages(platform, client, size, pages);
    const candidates: Record<string, () => Promise<unknown>> = {};
    for (const page of pages) {
      const statements = recorded.get(page) ?? [];
      candidates[`http ${page}`] = () => platform.call('GET', pathOf(page));
      candidates[`page ${page}`] = () => replay(client, statements.slice(0, 1));
      candidates[`all ${page}`] = () => replay(client, statements);
    }
    return mediansInTurn(candidates, rounds);
  });
  await platform.stop();
  const medianOf = (name: string) => medians[name] ?? NaN;
  return pages.map((page) => ({
    page,
    httpMs: medianOf(`http ${page}`),
    pageSqlMs: medianOf(`page ${page}`),
    allSqlMs: medianOf(`all ${page}`),
  }));
}

/** Makes the data; gives back what the service runs for each page. */
async function prepare(
  url: string,
  folder: string,
  adminKey: string,
  size: ListingSize,
  pages: readonly number[],
): Promise<Map<number, RecordedStatement[]>> {
  const recorder = await StatementRecorder.start(url, 'gpuaas');
  const platform = await Installation.start(recorder.url, join(folder, 'recorded'), adminKey);
  await withClient(url, (client) => generateSubscriptions(client, size));
  const recorded = new Map<number, RecordedStatement[]>();
  for (const page of pages) {
    const statements = await recorder.statementsOf(() => platform.call('GET', pathOf(page)));
    // What is asked meanwhile by those who look for what is due is not prepared.
    const ofListing = statements.filter(({ name }) => name.startsWith('subscriptions.'));
    if (ofListing.length === 0) throw new Error(`Page ${page} ran no statement that could be noted.`);
    recorded.set(page, ofListing);
  }
  await platform.stop();
  await recorder.stop();
  return recorded;
}

async function replay(client: pg.Client, statements: readonly RecordedStatement[]): Promise<void> {
  for (const { name, text, values } of statements) await client.query({ name, text, values });
}

/** A figure for a wrong answer is none. */
async function requireRightPages(
  platform: Installation,
  client: pg.Client,
  size: ListingSize,
  pages: readonly number[],
): Promise<void> {
  for (const page of pages) {
    const { data, pagination } = await platform.send<Listed>('GET', pathOf(page));
    const { rows } = await client.query<{ id: string }>(
      'SELECT subscription_id AS id FROM subscription ORDER BY created_at, subscription_id LIMIT $1 OFFSET $2',
      [limit, (page - 1) * limit],
    );
    const isRight = String(data.map(({ subscription_id }) => subscription_id)) === String(rows.map(({ id }) => id));
    const isMeasured = data.some(({ metrics_status }) => metrics_status === 'ok');
    if (!isRight || !isMeasured || data.length !== limit || pagination.total !== size.subscriptions) {
      throw new Error(`Page ${page} is wrong: ${JSON.stringify({ data, pagination })}`);
    }
  }
}
