import { asProblem } from './problem.js';
import { mostOfPage } from './query-client.js';

interface PageOf<Row> {
  data: Row[];
  /** Left out where a listing is answered whole. */
  pagination?: { total: number };
}

type ReadPage<Row> = (query: { page: number; limit: number }) => Promise<PageOf<Row>>;

const mostRefusals = 3;

/**
 * A page of a listing. A later one that is refused for the number of calls is asked again when the platform says: a try
 * that begins at the first page would be refused at the same place. Throws, and calls no more, once `signal` has ended
 * the query.
 */
export async function pageOf<Row>(read: ReadPage<Row>, page: number, signal: AbortSignal): Promise<PageOf<Row>> {
  for (let refusals = 0; ; refusals += 1) {
    signal.throwIfAborted();
    try {
      return await read({ page, limit: mostOfPage });
    } catch (error) {
      const { status, retryAfterSeconds } = asProblem(error);
      if (page === 1 || status !== 429 || refusals === mostRefusals) throw error;
      await new Promise((resolve) => setTimeout(resolve, (retryAfterSeconds ?? 1) * 1_000));
    }
  }
}

/** How many pages are read at once: half of the calls that a gateway makes at once for one team. */
const pagesAtOnce = 3;

/** All rows of a listing that counts its pages from 1, some pages at once, until `signal` ends the query. */
export async function everyRow<Row>(read: ReadPage<Row>, signal: AbortSignal): Promise<{ data: Row[] }> {
  const { data, pagination } = await pageOf(read, 1, signal);
  const rows = [...data];
  const pages = Math.ceil((pagination?.total ?? 0) / mostOfPage);
  for (let page = 2; page <= pages; page += pagesAtOnce) {
    const numbers = Array.from({ length: Math.min(pagesAtOnce, pages + 1 - page) }, (_, at) => page + at);
    const together = await Promise.all(numbers.map((number) => pageOf(read, number, signal)));
    rows.push(...together.flatMap((one) => one.data));
  }
  return { data: rows };
}

/** What counts as recent, in milliseconds: a week. */
export const recentMs = 7 * 86_400_000;

/**
 * The recent rows of a listing whose oldest come first, and some of the others: pages from the end, until one begins
 * with a row that is not recent, or `signal` ends the query.
 */
export async function recentRows<Row extends { created_at: string }>(
  read: ReadPage<Row>,
  signal: AbortSignal,
): Promise<{ data: Row[] }> {
  const first = await pageOf(read, 1, signal);
  const rows: Row[] = [];
  for (let page = Math.ceil((first.pagination?.total ?? 0) / mostOfPage); page > 1; page -= 1) {
    const { data } = await pageOf(read, page, signal);
    rows.unshift(...data);
    if (data[0] && Date.parse(data[0].created_at) < Date.now() - recentMs) return { data: rows };
  }
  return { data: [...first.data, ...rows] };
}
