import { ApiPropertyOptional } from '@nestjs/swagger';
import { WholeNumber, type Pagination } from '@atoll/contracts';
import { ShownInteger } from './old-answers.js';

const largestPage = 1_000_000_000;

class PageNumber {
  @ApiPropertyOptional({ default: 0 })
  @WholeNumber({
    min: 0,
    max: largestPage,
    optional: true,
    description: 'Number of the page, counted from 0.',
    example: 0,
  })
  page?: number;
}

const entriesPerPage = {
  min: 1,
  max: largestPage,
  optional: true,
  description: 'Entries per page; 1000 at most are returned.',
  example: 10,
} as const;

/** Which part of a listing an old client asks for: pages count from 0. */
export class OldPage extends PageNumber {
  @ApiPropertyOptional({ default: 10 })
  @WholeNumber(entriesPerPage)
  itemsPerPage?: number;
}

/** As `OldPage`, in the calls that have another name for the entries per page. */
export class PerPage extends PageNumber {
  @ApiPropertyOptional({ default: 10 })
  @WholeNumber(entriesPerPage)
  per_page?: number;
}

/** Where a page of subscriptions stands in its listing. */
export class PlaceInListing {
  @ShownInteger('Number of the page, counted from 0.')
  page!: number;

  @ShownInteger('Entries per page.')
  per_page!: number;

  @ShownInteger('Number of all subscriptions.')
  total_items!: number;

  @ShownInteger('Number of pages.')
  total_pages!: number;
}

export function placeInListing({ page, limit, total }: Pagination): PlaceInListing {
  return { page, per_page: limit, total_items: total, total_pages: Math.max(1, Math.ceil(total / limit)) };
}

export const mostPerPage = 1000;
/** What a listing of the main API gives at once. */
const mostAtOnce = 100;

interface Part<T> {
  data: T[];
  pagination?: Pagination;
}

/** Asks for a page of the main API, counted from 0. */
type AskFor<T> = (page: number, limit: number) => Promise<Part<T>>;

type IdOf<T> = (entry: T) => string;

/**
 * All entries of a listing, whatever their number. Of a listing in which entries appear only at the end, an entry that
 * is there all the time is returned once, whatever is added and deleted meanwhile.
 */
export async function allOf<T>(ask: AskFor<T>, idOf: IdOf<T>): Promise<T[]> {
  const first = await ask(0, mostAtOnce);
  const total = totalOf(first);
  return total > mostAtOnce ? entriesOf(ask, idOf, { size: mostAtOnce, from: 0, end: total }) : first.data;
}

/** As `pageOrLast`, of a listing that is here as a whole. */
export function pageOfAll<T>(
  all: readonly T[],
  { page = 0, itemsPerPage = 10 }: OldPage,
): { data: T[]; pagination: Pagination } {
  const limit = Math.min(itemsPerPage, mostPerPage);
  const shown = Math.min(page, Math.max(0, Math.ceil(all.length / limit) - 1));
  return {
    data: all.slice(shown * limit, (shown + 1) * limit),
    pagination: { page: shown, limit, total: all.length },
  };
}

/** The page that is asked for, or the last that has entries: there are clients that ask for page 1 first. */
export async function pageOrLast<T>(
  ask: AskFor<T>,
  idOf: IdOf<T>,
  { page = 0, itemsPerPage = 10 }: OldPage,
): Promise<{ data: T[]; pagination: Pagination }> {
  const limit = Math.min(itemsPerPage, mostPerPage);
  const size = Math.min(limit, mostAtOnce);
  const start = page * limit;
  // The main API counts pages up to `largestPage`, some of its listings from 1.
  const from = Math.min(Math.floor(start / size), largestPage - 1);
  const first = await ask(from, size);
  const total = totalOf(first);
  const last = Math.max(0, Math.ceil(total / limit) - 1);
  if (page > last) return pageOrLast(ask, idOf, { page: last, itemsPerPage });
  const end = Math.min(start + limit, total);
  const entries = end > (from + 1) * size ? await entriesOf(ask, idOf, { size, from, end }) : first.data;
  const skipped = start - from * size;
  return { data: entries.slice(skipped, skipped + limit), pagination: { page, limit, total } };
}

function totalOf({ data, pagination }: Part<unknown>): number {
  return pagination?.total ?? data.length;
}

/**
 * The entries of a listing up to number `end`, by pages of `size` from the page `from` on. The last page is read first:
 * where an entry is deleted meanwhile, those behind it move towards pages that are still to be read, and none is
 * missed.
 */
async function entriesOf<T>(
  ask: AskFor<T>,
  idOf: IdOf<T>,
  { size, from, end }: { size: number; from: number; end: number },
): Promise<T[]> {
  const parts: T[][] = [];
  for (let page = Math.ceil(end / size) - 1; page >= from; page -= 1) parts.push((await ask(page, size)).data);
  return [...new Map(parts.toReversed().flatMap((part) => part.map((entry) => [idOf(entry), entry]))).values()];
}
