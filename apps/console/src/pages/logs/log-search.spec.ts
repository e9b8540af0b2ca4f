import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isBackwards, startOfRange, validateLogs } from './log-search.js';

it('law: an address of the page of logs holds what can be read, and reads as itself', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('pod', 'q', 'range', 'since', 'until', 'at', 'live'), fc.anything()),
      (search) => {
        const read = validateLogs(search);
        expect(validateLogs({ ...read })).toEqual(read);
      },
    ),
  );
});

it('keeps a link as its sender saw it', () => {
  const search = {
    pod: 'trainer-abcde',
    q: 'loss=nan',
    since: '2026-11-01T00:00:00.000Z',
    until: '2026-11-02T00:00:00.000Z',
    at: '2026-11-01T10:00:00.000Z~2',
    live: 'off',
  };
  expect(validateLogs(search)).toEqual(search);
});

it.each([
  [{ pod: '../x' }, {}],
  [{ q: 'x'.repeat(300) }, { q: 'x'.repeat(200) }],
  [{ range: 'forever' }, {}],
  [{ range: '1h', since: '2026-11-01T00:00Z' }, { since: '2026-11-01T00:00:00.000Z' }],
  [{ since: '2026-13-01T00:00Z', at: 'x', live: 'on' }, {}],
])('reads %j as %j', (search, read) => {
  expect(validateLogs(search)).toEqual(read);
});

it.each([
  ['2026-11-01T00:00Z', '2026-11-01T00:01Z', false],
  ['2026-11-01T00:00Z', '2026-11-01T00:00Z', true],
  ['2026-11-02T00:00Z', '2026-11-01T00:00Z', true],
  [undefined, '2026-11-01T00:00Z', false],
  ['2026-11-02T00:00Z', undefined, false],
])('keeps the times from %s to %s; they are backwards: %s', (since, until, expected) => {
  const read = validateLogs({ since, until });
  expect([read.since?.slice(0, 16), read.until?.slice(0, 16)]).toEqual([since?.slice(0, 16), until?.slice(0, 16)]);
  expect(isBackwards(read)).toBe(expected);
});

it('starts a range before now', () => {
  expect(startOfRange('6h', Date.parse('2026-11-01T06:00:00Z'))).toBe('2026-11-01T00:00:00.000Z');
});
