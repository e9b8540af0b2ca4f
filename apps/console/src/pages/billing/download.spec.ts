import { expect, it } from '@jest/globals';
import { csvOf } from './download.js';

it('a bill as CSV is exact, adds up, and holds no formula', () => {
  const csv = csvOf({
    currency: 'USD',
    timezone: 'UTC',
    asOf: '2026-11-22T00:00:00Z',
    total: '3.000000001',
    intervals: [{ start: '2026-10-01T00:00:00Z', end: '2026-10-02T00:00:00Z', partial: false, cost: '3.000000001' }],
    groups: [
      { id: '1', name: '=HYPERLINK("http://x")', cost: '1', hours: null, unit: null, cells: ['1'] },
      { id: '2', name: 'a;=1+1;-b;c, b', cost: '2.000000001', hours: null, unit: null, cells: ['2.000000001'] },
      { id: '3', name: '＝1+1;＋1;－1;＠SUM(1)', cost: '0', hours: null, unit: null, cells: ['0'] },
    ],
    unpriced: [],
  });
  expect(csv.split('\r\n')).toEqual([
    `start,end,"'=HYPERLINK(""http://x"")","a;'=1+1;'-b;c, b",'＝1+1;'＋1;'－1;'＠SUM(1),total USD`,
    '2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,1,2.000000001,0,3.000000001',
    ',total,1,2.000000001,0,3.000000001',
    '',
  ]);
});
