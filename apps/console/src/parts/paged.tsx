import type { UseQueryResult } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { useRef, useState, type ReactNode } from 'react';
import { quantity } from '../format/format.js';
import { FindField } from './find-field.js';
import { Pager } from './listing.js';
import type { Place } from './listing-place.js';
import { Empty, Loaded } from './states.js';

interface PageRead {
  pagination: { page: number; limit: number; total: number };
}

interface PagedProps<Data extends PageRead> {
  label: string;
  query: UseQueryResult<Data>;
  /** The page that is wanted, as the API counts, from `first`. */
  page: string;
  first: 0 | 1;
  height: number;
  onTurn: (page: string) => void;
  /** Where the platform finds in it: a listing of several pages has a field for that. */
  place?: Place;
  children: (data: Data) => ReactNode;
}

/**
 * A listing that is read a page at a time. The buttons that turn its pages stay while another page is read, and keep
 * the focus.
 */
export function Paged<Data extends PageRead>({
  label,
  query,
  page,
  first,
  height,
  onTurn,
  place,
  children,
}: PagedProps<Data>) {
  const top = useRef<HTMLDivElement>(null);
  // Of another team, kind or text it is another listing, whose count is not known yet.
  const listing = JSON.stringify([useParams({ strict: false }), { ...useSearch({ strict: false }), page: undefined }]);
  const [last, setLast] = useState<{ listing: string; read: PageRead['pagination'] }>();
  const read = query.data?.pagination;
  if (read && !query.isPlaceholderData && (read !== last?.read || listing !== last.listing)) setLast({ listing, read });
  const pagination = read ?? (last?.listing === listing ? { ...last.read, page: Number(page) } : undefined);
  const [isLong, setLong] = useState(false);
  // It stays long: a field that is in use must not disappear.
  if (!isLong && place && (place.typed !== '' || (read && read.total > read.limit))) setLong(true);
  // What was found before stays while the whole listing is read.
  const isFound = place !== undefined && (place.asked.find !== '' || query.isPlaceholderData);
  const turn = (next: number, isEnd: boolean) => {
    onTurn(String(next));
    if (place) top.current?.scrollIntoView();
    // The button that was pressed cannot be pressed any more, and would lose the focus.
    if (isEnd) top.current?.focus({ preventScroll: true });
  };
  return (
    <div role="group" aria-label={label} tabIndex={-1} ref={top} className="stack">
      {place && isLong && (
        <div className="toolbar finder">
          <FindField label={label} place={place} />
          <p className="hint" role="status">
            {isFound && read && !query.isPlaceholderData && `${quantity(read.total)} found`}
          </p>
        </div>
      )}
      <Loaded query={query} height={height}>
        {(data) => (isFound && data.pagination.total === 0 ? <Empty title="Nothing matches" /> : children(data))}
      </Loaded>
      {pagination && <Pager {...pagination} first={first} isTold onChange={turn} />}
    </div>
  );
}
