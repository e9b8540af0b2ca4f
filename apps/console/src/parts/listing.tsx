import { useDeferredValue, useMemo, useRef, useState, type ReactNode } from 'react';
import { quantity } from '../format/format.js';
import { folded } from './best-matches.js';
import { Button } from './button.js';
import { FindField } from './find-field.js';
import { HoldRows, useHeldRows, type Shown } from './held-rows.js';
import { useListingPlace } from './listing-place.js';
import { useOnPaper } from './on-paper.js';
import { Empty } from './states.js';

/** The rows of a page: each key pressed in the field above them renders as many. */
const rowsOfPage = 50;

/** The texts by which a row is found. */
export type FindBy<Row> = (row: Row) => readonly (string | null | undefined)[];

interface ListingProps<Row> {
  label: string;
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  findBy?: FindBy<Row> | undefined;
  /** Stands in place of no rows; a dialog of the last row stays open before. */
  empty?: ReactNode;
  /** The address of the page says what is sought in it, and which of its pages is shown. */
  isInAddress?: boolean | undefined;
  /** Each row reads data of its own: on paper, too, there is one page of them. */
  isReadByRow?: boolean;
  children: (shown: Shown<Row>) => ReactNode;
}

/**
 * A listing that was read whole. A long one is rendered in pages, above them a field that finds rows in all of them; on
 * paper it is whole again.
 */
export function Listing<Row>(props: ListingProps<Row>) {
  const { label, rows, keyOf, findBy, empty, isInAddress = false, isReadByRow = false, children } = props;
  const place = useListingPlace(isInAddress);
  const { typed, page: wanted } = place;
  const [isLong, setLong] = useState(false);
  // It stays long: a field that is in use must not disappear.
  if (!isLong && (rows.length > rowsOfPage || typed !== '')) setLong(true);
  const top = useRef<HTMLDivElement>(null);
  const isWhole = useOnPaper() && !isReadByRow;
  const sought = folded(useDeferredValue(typed).trim());
  const found = useMemo(
    () => (findBy && sought !== '' ? rows.filter((row) => folded(findBy(row).join('\n')).includes(sought)) : rows),
    [rows, findBy, sought],
  );
  const limit = isWhole ? Math.max(rows.length, rowsOfPage) : rowsOfPage;
  const pages = Math.max(1, Math.ceil(found.length / limit));
  const page = Math.min(wanted, pages);
  const before = (page - 1) * limit;
  const ofPage = { rows: found.slice(before, before + limit), before, total: found.length };
  const [shown, hold] = useHeldRows(ofPage, rows, keyOf);
  const turn = (next: number, isEnd: boolean) => {
    place.turn(next);
    top.current?.scrollIntoView();
    // The button that was pressed cannot be pressed any more, and would lose the focus.
    if (isEnd) top.current?.focus({ preventScroll: true });
  };
  return (
    <>
      {isLong && (
        <div className="toolbar finder" ref={top} tabIndex={-1}>
          {findBy && <FindField label={label} place={place} />}
          <p className="hint" role="status">
            {placeOf(shown, rows.length, sought !== '')}
          </p>
        </div>
      )}
      <HoldRows value={hold}>
        {(shown.rows.length === 0 && (rows.length === 0 ? empty : <Empty title="Nothing matches" />)) ||
          children(shown)}
      </HoldRows>
      <Pager page={page} first={1} limit={limit} total={found.length} onChange={turn} />
    </>
  );
}

/** Which rows are shown, of how many. */
function placeOf({ rows, before, total }: Shown<unknown>, all: number, isFound: boolean): string {
  const range = `${quantity(before + Math.min(1, rows.length))} to ${quantity(before + rows.length)}`;
  if (!isFound) return `${range} of ${quantity(all)}`;
  const match = `${quantity(total)} of ${quantity(all)} match`;
  return rows.length < total ? `${match}; ${range} are shown` : match;
}

interface PagerProps {
  /** As the API counts, from `first`. */
  page: number;
  first: 0 | 1;
  limit: number;
  total: number;
  /** Screen readers tell which page is shown. */
  isTold?: boolean;
  onChange: (page: number, isEnd: boolean) => void;
}

export function Pager({ page, first, limit, total, isTold = false, onChange }: PagerProps) {
  const pages = Math.max(1, Math.ceil(total / limit));
  const at = page - first;
  const isBeyond = at >= pages;
  const turn = (to: number) => onChange(to + first, to <= 0 || to === pages - 1);
  if (pages === 1 && at === 0) return null;
  return (
    <nav className="pager" aria-label="Pages">
      <Button isSmall isDisabled={at <= 0} onPress={() => turn(Math.min(at, pages) - 1)}>
        {isBeyond ? 'Last page' : 'Previous'}
      </Button>
      <span className="hint" {...(isTold && { role: 'status' })}>
        {isBeyond ? `There is no page ${at + 1}` : `Page ${at + 1} of ${quantity(pages)}`}, {quantity(total)} in all
      </span>
      <Button isSmall isDisabled={at + 1 >= pages} onPress={() => turn(at + 1)}>
        Next
      </Button>
    </nav>
  );
}
