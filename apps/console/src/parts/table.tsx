import { useId, type ReactNode } from 'react';
import { RowHead } from './button.js';
import { Held } from './held.js';
import { Listing, type FindBy } from './listing.js';

export interface Column<Row> {
  /** Empty for what can be done with the row. */
  title: string;
  /** `now`: of an empty title, the row as it was last read (see `Held`). */
  cell: (row: Row, now: Row) => ReactNode;
  isNumber?: boolean;
  /** It is not broken into lines, such as an instant. */
  isWhole?: boolean;
  /** The column that names the row. */
  isHead?: boolean;
}

interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** By what rows are found where there are many. */
  findBy?: FindBy<Row>;
  /** Stands in place of no rows. */
  empty?: ReactNode;
  isInAddress?: boolean;
  /** The cells of the last row; `name` names the total in it. */
  foot?: (name: string) => ReactNode;
}

/** A real table; on a narrow screen it scrolls in its own box, by keyboard too. A long one is shown in pages. */
export function Table<Row>({ label, columns, rows, keyOf, foot, ...listing }: TableProps<Row>) {
  const id = useId();
  return (
    <Listing label={label} rows={rows} keyOf={keyOf} {...listing}>
      {({ rows: shown, before, total }) => (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
        <div className="table-box" role="region" aria-label={label} tabIndex={0}>
          <table {...(shown.length < total && { 'aria-rowcount': total + (foot ? 2 : 1) })}>
            <thead>
              <tr>
                {columns.map(({ title, isNumber }) => (
                  <th key={title} scope="col" className={isNumber ? 'number' : undefined}>
                    {title || <span className="visually-hidden">Actions</span>}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((row, at) => (
                <RowHead key={keyOf(row)} value={`${id}${at}`}>
                  <tr {...(shown.length < total && { 'aria-rowindex': before + at + 2 })}>
                    {columns.map((column) => (
                      <Cell key={column.title} column={column} row={row} headId={`${id}${at}`} />
                    ))}
                  </tr>
                </RowHead>
              ))}
            </tbody>
            {foot && (
              <tfoot>
                <tr {...(shown.length < total && { 'aria-rowindex': total + 2 })}>
                  {foot(shown.length < rows.length ? 'Total of all' : 'Total')}
                </tr>
              </tfoot>
            )}
          </table>
        </div>
      )}
    </Listing>
  );
}

interface CellProps<Row> {
  column: Column<Row>;
  row: Row;
  headId: string;
}

function Cell<Row>({ column: { title, cell, isNumber, isWhole, isHead }, row, headId }: CellProps<Row>) {
  const className = isNumber ? 'number' : isWhole ? 'whole' : undefined;
  if (!isHead) return <td className={className}>{title ? cell(row, row) : <Held of={row}>{cell}</Held>}</td>;
  return (
    <th scope="row" className={className} id={headId}>
      {cell(row, row)}
    </th>
  );
}
