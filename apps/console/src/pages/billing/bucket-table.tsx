import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import type { Bill } from '../../api/bill.js';
import { minorDigits, money } from '../../format/format.js';
import { roundToAddUp } from '../../format/money.js';
import { useOnPaper } from '../../parts/on-paper.js';
import { Card } from '../../parts/page.js';

const rowHeight = 37;
const beyond = 8;

interface BucketTableProps {
  bill: Bill;
  names: readonly string[];
  total: string;
}

/** A row an interval, however many: only those in view are in the page, and all of them on paper. */
export function BucketTable({ bill, names, total }: BucketTableProps) {
  const box = useRef<HTMLDivElement>(null);
  const { intervals, currency } = bill;
  const isOnPaper = useOnPaper();
  const shown = roundToAddUp(
    intervals.map(({ cost }) => cost),
    minorDigits(currency),
  );
  // oxlint-disable-next-line react/incompatible-library -- nothing here is compiled
  const rows = useVirtualizer({
    count: intervals.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: isOnPaper ? intervals.length : beyond,
    initialRect: { width: 0, height: 420 },
  });
  const visible = rows.getVirtualItems();
  const before = visible[0]?.start ?? 0;
  const after = rows.getTotalSize() - (visible.at(-1)?.end ?? 0);
  return (
    <Card title="By interval">
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <div ref={box} className="table-box long" role="region" aria-label="Cost by interval" tabIndex={0}>
        <table aria-rowcount={intervals.length + 2}>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col" className="number">
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" style={{ height: before }} />
            {visible.map(({ index, key }) => (
              <tr key={key} aria-rowindex={index + 2}>
                <th scope="row">
                  {names[index]} {intervals[index]?.partial && <span className="hint">(not whole)</span>}
                </th>
                <td className="number">{money(shown[index] ?? '0', currency)}</td>
              </tr>
            ))}
            <tr aria-hidden="true" style={{ height: after }} />
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              <td className="number">{money(total, currency)}</td>
            </tr>
          </tfoot>
        </table>
      </div>
    </Card>
  );
}
