import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { Wire } from './contract.js';
import { ListOf, Nested, QueryFlag, WholeNumber } from './fields.js';

const largestPage = 1_000_000_000;
const defaultLimit = 10;

/** Which part of a listing is asked for, where pages count from 0: teams, members, workspaces. */
export class PageFromZero {
  @ApiPropertyOptional({ default: 0 })
  @WholeNumber({
    min: 0,
    max: largestPage,
    optional: true,
    description: 'Number of the page, counted from 0.',
    example: 0,
  })
  page?: number;

  @ApiPropertyOptional({ default: defaultLimit })
  @WholeNumber({ min: 1, max: 100, optional: true, description: 'Entries per page, 1 to 100.', example: 10 })
  limit?: number;
}

/** Which part of a listing is asked for, where pages count from 1: all other listings. */
export class PageFromOne {
  @ApiPropertyOptional({ default: 1 })
  @WholeNumber({
    min: 1,
    max: largestPage,
    optional: true,
    description: 'Number of the page, counted from 1.',
    example: 1,
  })
  page?: number;

  @ApiPropertyOptional({ default: defaultLimit })
  @WholeNumber({ min: 1, max: 100, optional: true, description: 'Entries per page, 1 to 100.', example: 10 })
  limit?: number;
}

/** Which part is asked for of a listing that is given whole unless `limit` is sent. */
export class PageFromOneOrAll {
  @ApiPropertyOptional({ default: 1 })
  @WholeNumber({
    min: 1,
    max: largestPage,
    optional: true,
    description: 'Number of the page, counted from 1; ignored without `limit`.',
    example: 1,
  })
  page?: number;

  @WholeNumber({
    min: 1,
    max: 100,
    optional: true,
    description: 'Entries per page, 1 to 100; all entries if left out.',
    example: 10,
  })
  limit?: number;
}

/** Whether resources that have ended are listed too. */
export class IncludeEnded {
  @ApiPropertyOptional({ default: false })
  @QueryFlag({ optional: true, description: 'Whether resources that have ended are listed too.' })
  include_ended?: string;
}

/** Where a page stands in its listing. */
export class Pagination {
  @ApiProperty({ type: 'integer', example: 0 })
  page!: number;

  @ApiProperty({ type: 'integer', example: 10 })
  limit!: number;

  @ApiProperty({ type: 'integer', description: 'Number of entries on all pages.', example: 1 })
  total!: number;
}

/** A page of a listing, as it is answered. */
interface Page<Entry> {
  data: Entry[];
  pagination: Pagination;
}

/** The class of a paged response: up to `max` entries (default 100), and their position in the listing. */
export function PageOf<Entry extends object>(entry: () => Wire<Entry>, { max = 100 } = {}): Wire<Page<Entry>> {
  class ListingPage implements Page<Entry> {
    @ListOf(entry, { max })
    data!: Entry[];

    @Nested(() => Pagination)
    pagination!: Pagination;
  }
  return ListingPage;
}

/**
 * The class of an answer that is the whole listing, up to `max` entries and without `pagination`, unless `limit` was
 * sent: then a page.
 */
export function ListOrPageOf<Entry extends object>(
  entry: () => Wire<Entry>,
  { max }: { max: number },
): Wire<Pick<Page<Entry>, 'data'> & Partial<Page<Entry>>> {
  class Listing {
    @ListOf(entry, { max })
    data!: Entry[];

    @Nested(() => Pagination, { optional: true })
    pagination?: Pagination;
  }
  return Listing;
}

/**
 * The page asked for with its defaults filled in, and how many rows to skip to get there. `first` is the number of the
 * first page.
 */
export function pageWindow(
  asked: { page?: number; limit?: number },
  first: 0 | 1,
): { page: number; limit: number; offset: number } {
  const { page = first, limit = defaultLimit } = asked;
  return { page, limit, offset: (page - first) * limit };
}

interface PageWindow {
  readonly page: number;
  readonly limit: number;
  readonly offset: number;
}

/**
 * Of a listing that is whole unless `limit` is sent: the page asked for, pages counted from 1; undefined for the whole.
 */
export function windowIfLimited(asked: { page?: number; limit?: number }): PageWindow | undefined {
  return asked.limit === undefined ? undefined : pageWindow(asked, 1);
}

/** The answer of such a listing. */
export function allOrPage<Entry>(
  data: Entry[],
  window: PageWindow | undefined,
  total: number,
): { data: Entry[]; pagination?: { page: number; limit: number; total: number } } {
  return { data, ...(window && { pagination: { page: window.page, limit: window.limit, total } }) };
}

/** The answer of an operation that has nothing to tell: 204 over HTTP. */
export class Nothing {}
