import { ApiPropertyOptional } from '@nestjs/swagger';
import { WholeNumber, type Pagination } from '@atoll/contracts';

const largestPage = 1_000_000_000;

/** Which part of a listing an old client asks for: pages count from 0. */
export class OldPage {
  @ApiPropertyOptional({ default: 0 })
  @WholeNumber({
    min: 0,
    max: largestPage,
    optional: true,
    description: 'Number of the page, counted from 0.',
    example: 0,
  })
  page?: number;

  @ApiPropertyOptional({ default: 10 })
  @WholeNumber({
    min: 1,
    max: largestPage,
    optional: true,
    description: 'Entries per page; 1000 at most are returned.',
    example: 10,
  })
  itemsPerPage?: number;
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

/** All entries of a listing, whatever their number. */
export async function allOf<T>(ask: AskFor<T>): Promise<T[]> {
  const all: T[] = [];
  for (let page = 0; ; page += 1) {
    const { data, pagination } = await ask(page, mostAtOnce);
    all.push(...data);
    if (data.length === 0 || all.length >= (pagination?.total ?? 0)) return all;
  }
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
  { page = 0, itemsPerPage = 10 }: OldPage,
): Promise<{ data: T[]; pagination: Pagination }> {
  const limit =
    itemsPerPage > mostAtOnce
      ? mostAtOnce * Math.min(mostPerPage / mostAtOnce, Math.ceil(itemsPerPage / mostAtOnce))
      : itemsPerPage;
  const first = await ask(limit > mostAtOnce ? (page * limit) / mostAtOnce : page, Math.min(limit, mostAtOnce));
  const total = first.pagination?.total ?? first.data.length;
  const last = Math.max(0, Math.ceil(total / limit) - 1);
  if (page > last) return pageOrLast(ask, { page: last, itemsPerPage });
  const data = [...first.data];
  for (let part = 1; part < limit / mostAtOnce && page * limit + data.length < total; part += 1) {
    data.push(...(await ask((page * limit) / mostAtOnce + part, mostAtOnce)).data);
  }
  return { data, pagination: { page, limit, total } };
}
