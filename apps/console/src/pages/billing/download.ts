import type { Bill } from '../../api/bill.js';

/**
 * A field of CSV (RFC 4180). What a spreadsheet would take for a formula is a text, also behind a semicolon: where
 * numbers have a comma, spreadsheets split there. In some languages they take the full-width forms too:
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
function field(value: string): string {
  const safe = value.replace(/(?<=^|;)(?=[=+@\t\r＝＋＠－]|-(?![\d.]+$))/g, "'");
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** What the page shows, exact: a line an interval, a column a group, and the total. */
export function csvOf(bill: Bill): string {
  const head = ['start', 'end', ...bill.groups.map(({ name }) => name), `total ${bill.currency}`];
  const lines = bill.intervals.map(({ start, end, cost }, at) => [
    start,
    end,
    ...bill.groups.map(({ cells }) => cells[at] ?? '0'),
    cost,
  ]);
  const foot = ['', 'total', ...bill.groups.map(({ cost }) => cost), bill.total];
  return [head, ...lines, foot].map((line) => line.map(field).join(',')).join('\r\n') + '\r\n';
}

export function download(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
