import type { Pagination } from '@atoll/contracts';

/**
 * The `Link` header (RFC 8288) of one page of a listing: first, prev, next and last, each as a reference to the same
 * path with all other query parameters kept. A page past the end has the last one as its previous.
 */
export function pageLinks(url: string, { page, limit, total }: Pagination, firstPage: 0 | 1): string {
  const queryAt = url.indexOf('?');
  const path = queryAt === -1 ? url : url.slice(0, queryAt);
  const query = queryAt === -1 ? '' : url.slice(queryAt + 1);
  const last = firstPage + Math.max(0, Math.ceil(total / limit) - 1);
  const link = (target: number, relation: string): string => {
    const parameters = new URLSearchParams(query);
    parameters.set('page', String(target));
    parameters.set('limit', String(limit));
    return `<${path}?${parameters.toString()}>; rel="${relation}"`;
  };
  return [
    link(firstPage, 'first'),
    ...(page > firstPage ? [link(Math.min(page - 1, last), 'prev')] : []),
    ...(page < last ? [link(page + 1, 'next')] : []),
    link(last, 'last'),
  ].join(', ');
}

/** The pagination of an answer that has one. */
export function paginationOf(answer: unknown): Pagination | undefined {
  return (answer as { pagination?: Pagination } | null | undefined)?.pagination;
}
