import { describe, expect, it } from '@jest/globals';
import { Sealer } from '@atoll/seal';
import type { Admission } from '../log-ins/admission-control.js';
import { TerminalTickets } from './terminal-tickets.js';

const size = { columns: 120, rows: 40 };

describe('a ticket', () => {
  it('opens once, and nothing after it has expired', () => {
    let nowMs = 1_000_000;
    const tickets = new TerminalTickets(new Sealer(Sealer.createKeys()), () => nowMs);
    const request = { admission: { userId: 'u', podName: 'p' } as Admission, size };
    const place = { host: '127.0.0.1', port: 7 };
    const { ticket } = tickets.make(request, place);
    expect(tickets.redeem(ticket, 'other')).toBeNull();
    expect(tickets.redeem(ticket, 'p')).toMatchObject(request);
    expect(tickets.redeem(ticket, 'p')).toBeNull();
    const late = tickets.make(request, place).ticket;
    nowMs += 30_000;
    expect([tickets.placeOf(late, 'p'), tickets.redeem(late, 'p')]).toEqual([null, null]);
  });

  it('is not hoarded: a user has at most 20 unused ones, and room for more when they expire', () => {
    let nowMs = 1_000_000;
    const tickets = new TerminalTickets(new Sealer(Sealer.createKeys()), () => nowMs);
    const make = (userId: string) =>
      tickets.make({ admission: { userId, podName: 'p' } as Admission, size }, { host: 'h', port: 1 });
    for (let made = 0; made < 20; made += 1) make('greedy');
    expect(() => make('greedy')).toThrow('Too many requests');
    make('other');
    nowMs += 30_000;
    make('greedy');
  });

  it('is not hoarded by many: all users together have at most 1,000 unused ones', () => {
    const tickets = new TerminalTickets(new Sealer(Sealer.createKeys()), () => 1_000_000);
    const make = (userId: string) =>
      tickets.make({ admission: { userId, teamId: userId, podName: 'p' } as Admission, size }, { host: 'h', port: 1 });
    for (let made = 0; made < 1_000; made += 1) make(`user ${made}`);
    expect(() => make('another')).toThrow('Too many requests');
  });

  it('is not hoarded by a team: it has no more unused ones than are left for others, however many its members are', () => {
    const tickets = new TerminalTickets(new Sealer(Sealer.createKeys()), () => 1_000_000);
    const make = (teamId: string, userId: string) =>
      tickets.make({ admission: { userId, teamId, podName: 'p' } as Admission, size }, { host: 'h', port: 1 });
    const mostOf = (teamId: string): number => {
      for (let made = 0; ; made += 1)
        try {
          make(teamId, `${teamId} ${made}`);
        } catch (error) {
          expect(error).toMatchObject({ code: 'too_many_requests' });
          return made;
        }
    };
    expect(['one', 'two', 'three'].map(mostOf)).toEqual([500, 250, 125]);
  });
});
