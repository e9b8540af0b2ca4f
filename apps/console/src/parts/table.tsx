import { useId, type ReactNode } from 'react';
import { Button, RowHead } from './button.js';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ReactNode;
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
  foot?: ReactNode;
}

/** A real table; on a narrow screen it scrolls in its own box, by keyboard too. */
export function Table<Row>({ label, columns, rows, keyOf, foot }: TableProps<Row>) {
  const id = useId();
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
    <div className="table-box" role="region" aria-label={label} tabIndex={0}>
      <table>
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
          {rows.map((row, at) => (
            <RowHead key={keyOf(row)} value={`${id}${at}`}>
              <tr>
                {columns.map(({ title, cell, isNumber, isWhole, isHead }) => {
                  const className = isNumber ? 'number' : isWhole ? 'whole' : undefined;
                  if (isHead)
                    return (
                      <th key={title} scope="row" className={className} id={`${id}${at}`}>
                        {cell(row)}
                      </th>
                    );
                  return (
                    <td key={title} className={className}>
                      {cell(row)}
                    </td>
                  );
                })}
              </tr>
            </RowHead>
          ))}
        </tbody>
        {foot !== undefined && <tfoot>{foot}</tfoot>}
      </table>
    </div>
  );
}

interface PagerProps {
  /** As the API counts, from `first`. */
  page: number;
  first: 0 | 1;
  limit: number;
  total: number;
  onChange: (page: number) => void;
}

export function Pager({ page, first, limit, total, onChange }: PagerProps) {
  const pages = Math.max(1, Math.ceil(total / limit));
  const at = page - first;
  const isBeyond = at >= pages;
  if (pages === 1 && at === 0) return null;
  return (
    <nav className="pager" aria-label="Pages">
      <Button isSmall isDisabled={at <= 0} onPress={() => onChange(Math.min(page - 1, pages - 1 + first))}>
        {isBeyond ? 'Last page' : 'Previous'}
      </Button>
      <span className="hint">
        {isBeyond ? `There is no page ${at + 1}` : `Page ${at + 1} of ${pages}`}, {total} in all
      </span>
      <Button isSmall isDisabled={at + 1 >= pages} onPress={() => onChange(page + 1)}>
        Next
      </Button>
    </nav>
  );
}
