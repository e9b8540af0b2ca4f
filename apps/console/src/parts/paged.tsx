import type { UseQueryResult } from '@tanstack/react-query';
import { useRef, useState, type ReactNode } from 'react';
import { Pager } from './listing.js';
import { Loaded } from './states.js';

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
  children,
}: PagedProps<Data>) {
  const top = useRef<HTMLDivElement>(null);
  const [last, setLast] = useState<PageRead['pagination']>();
  const read = query.data?.pagination;
  if (read !== undefined && read !== last) setLast(read);
  const pagination = read ?? (last && { ...last, page: Number(page) });
  const turn = (next: number, isEnd: boolean) => {
    onTurn(String(next));
    // The button that was pressed cannot be pressed any more, and would lose the focus.
    if (isEnd) top.current?.focus({ preventScroll: true });
  };
  return (
    <div role="group" aria-label={label} tabIndex={-1} ref={top} className="stack">
      <Loaded query={query} height={height}>
        {children}
      </Loaded>
      {pagination && <Pager {...pagination} first={first} isTold onChange={turn} />}
    </div>
  );
}
