import { describe, expect, it, jest } from '@jest/globals';
import { ThrottledLog } from './throttled-log.js';

describe('a log of what lasts, or what others can cause at will', () => {
  it('has the first line of a kind at once, and then one for many', () => {
    const lines: string[] = [];
    const log = new ThrottledLog(({ message }) => void lines.push(message));
    for (const kind of ['a', 'a', 'b', 'a']) log.log(kind, { message: kind });
    expect(lines).toEqual(['a', 'b']);
  });

  it('has what begins again at once', () => {
    const lines: string[] = [];
    const log = new ThrottledLog(({ message }) => void lines.push(message));
    for (const message of ['a', 'a']) log.log('kind', { message });
    log.forget();
    log.log('kind', { message: 'again' });
    expect(lines).toEqual(['a', 'again']);
  });

  it('has a line a minute, which says how many were left out', () => {
    const now = jest.spyOn(performance, 'now');
    const lines: string[] = [];
    const log = new ThrottledLog(({ message }) => void lines.push(message));
    for (const atMs of [0, 1, 59_999, 60_000, 60_001, 120_000, 500_000]) {
      now.mockReturnValue(atMs);
      log.log('a', { message: `at ${atMs}` });
    }
    now.mockRestore();
    expect(lines).toEqual([
      'at 0',
      'at 60000 (2 more since the last such line)',
      'at 120000 (1 more since the last such line)',
      'at 500000',
    ]);
  });
});
