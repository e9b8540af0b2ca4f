import { describe, expect, it } from '@jest/globals';
import { RecentSet } from './recent-set.js';

describe('a set of recent texts', () => {
  it('has a text for its time from the last addition, to the millisecond', () => {
    let nowMs = 0;
    const set = new RecentSet(() => nowMs, { maxAgeMs: 100, maxEntries: 10 });
    set.add('a');
    nowMs = 50;
    set.add('a');
    nowMs = 149;
    expect([set.has('a'), set.has('b')]).toEqual([true, false]);
    nowMs = 150;
    expect(set.has('a')).toBe(false);
  });

  it('forgets on request, and trusts no addition from the future of a clock that was set back', () => {
    let nowMs = 1_000;
    const set = new RecentSet(() => nowMs, { maxAgeMs: 100, maxEntries: 10 });
    set.add('a');
    set.add('b');
    set.delete('a');
    expect([set.has('a'), set.has('b')]).toEqual([false, true]);
    nowMs = 0;
    expect(set.has('b')).toBe(false);
  });

  it('stays bounded: what is too old goes first, then what was added the longest ago', () => {
    let nowMs = 0;
    const set = new RecentSet(() => nowMs, { maxAgeMs: 100, maxEntries: 3 });
    for (const text of ['a', 'b', 'c']) set.add(text);
    set.add('a');
    set.add('d');
    expect(['a', 'b', 'c', 'd'].map((text) => set.has(text))).toEqual([true, false, true, true]);
    nowMs = 100;
    set.add('e');
    expect(set.size).toBe(1);
  });
});
