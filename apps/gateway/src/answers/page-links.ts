import type { Pagination } from '@atoll/contracts';
import { textOf, type JsonText } from '@atoll/rpc';

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

/** More than a pagination takes as JSON. */
const endBytes = 200;
/** A quote in a text would be escaped: this is a field, and of the outermost object. */
const paginationAtEnd = /,"pagination":(\{[^{}]*\})\}$/;

/** As `paginationOf`, of JSON; what comes before the pagination is not read where that is the last field. */
export function paginationOfJson(json: JsonText): Pagination | undefined {
  const [, pagination] = paginationAtEnd.exec(endOf(json)) ?? [];
  return pagination === undefined ? paginationOf(JSON.parse(textOf(json))) : (JSON.parse(pagination) as Pagination);
}

function endOf(json: JsonText): string {
  if (typeof json === 'string') return json.slice(-endBytes);
  let end = Buffer.alloc(0);
  for (const part of json.toReversed()) {
    if (end.length >= endBytes) break;
    end = Buffer.concat([part.subarray(-endBytes), end]);
  }
  return end.toString('utf8');
}
