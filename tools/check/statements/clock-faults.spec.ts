import { describe, expect, it } from '@jest/globals';
import { clockFaults } from './clock-faults.js';

const indexed = new Map([['due_at', ['ship']]]);

describe('a comparison with a clock that is asked for each row', () => {
  it.each([
    ['SELECT FROM ship WHERE due_at <= clock_timestamp()', 'due_at <= clock_timestamp()'],
    [`DELETE FROM ship WHERE ship.due_at < clock_timestamp() - interval '1 day'`, 'ship.due_at < clock_timestamp()'],
  ])('is refused of an indexed column: %s', (text, found) => {
    expect(clockFaults(text, indexed)).toEqual([
      `\`${found}\` reads all rows, though due_at has an index: write (SELECT clock_timestamp())`,
    ]);
  });

  it.each([
    'SELECT FROM ship WHERE due_at <= (SELECT clock_timestamp())',
    'UPDATE ship SET due_at = clock_timestamp()',
    'SELECT FROM ship WHERE built_at <= clock_timestamp()',
    'SELECT FROM harbour WHERE due_at <= clock_timestamp()',
  ])('is not found in %s', (text) => {
    expect(clockFaults(text, indexed)).toEqual([]);
  });
});
