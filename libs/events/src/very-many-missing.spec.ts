import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { Logger } from '@nestjs/common';
import { InboxInMemory, looksFor } from './world/looks-fixture.js';

/** A page of a publisher that has the events of these positions: at most 200 of those after it. */
function pageOf(positions: Iterable<number>, after: number, upTo = Infinity, name = '') {
  const found = [...positions].filter((at) => at > after && at <= upTo).slice(0, 200);
  const events = found.map((position) => ({ position, id: `${name}${position}` }) as never);
  return { events, forgotten_up_to: 0, has_none: false };
}
const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);

describe('a consumer that misses very many events of one name', () => {
  /** The consumer of `last` events of one name, and one event of another name, as the publisher has them. */
  const replay = (last: number, outcome: unknown, { silent = [] }: { silent?: string[] } = {}) => {
    const [taken, asked]: [string[], string[]] = [[], []];
    const source = {
      read: async (_publisher: string, { event_name, after }: { event_name: string; after: number }) => {
        asked.push(event_name);
        if (silent.includes(event_name)) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          throw new AppError('deadline_exceeded', 'No answer.');
        }
        return pageOf(upTo(event_name === 'orders.placed' ? last : 1), after, Infinity, `${event_name} `);
      },
    };
    const take = async ({ id, name }: { id: string; name: string }) => {
      taken.push(id);
      return name === 'orders.placed' ? outcome : 'done';
    };
    const missing = looksFor({}, source, { take, names: [...silent, 'orders.placed', 'orders.paid'] });
    return { taken, asked, missing };
  };
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** All that becomes of the looks that are due within this time. */
  const pass = async (ms: number) => {
    await jest.advanceTimersByTimeAsync(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };

  it('handles each of them once, in order, and at once; other events wait neither for them nor for a publisher that hangs', async () => {
    const { taken, asked, missing } = replay(1_000, 'done', { silent: ['orders.failed'] });
    missing.start();
    await pass(4);
    expect(taken.filter((id) => id.startsWith('orders.placed'))).toEqual(
      Array.from({ length: 1_000 }, (_, at) => `orders.placed ${at + 1}`),
    );
    expect(taken.indexOf('orders.paid 1')).toBeLessThan(200);
    expect(asked.filter((name) => name === 'orders.failed')).toHaveLength(1);
    const stopped = missing.stop();
    await pass(5);
    await stopped;
  });

  it('goes on at the next look, and not at once, where none of them has its effect', async () => {
    const { asked, missing } = replay(1_000, { retryAfterMs: 3_600_000 });
    missing.start();
    await pass(999);
    expect(asked.filter((name) => name === 'orders.placed')).toHaveLength(2);
    await pass(1);
    expect(asked.filter((name) => name === 'orders.placed')).toHaveLength(4);
    await missing.stop();
  });

  it('goes on at once from one place to the next, and says until the end that some are missing', async () => {
    const missed = new Set(Array.from({ length: 1_200 }, (_, at) => at + 1 + (at < 600 ? 0 : 100)));
    const counts: number[] = [];
    const gaps = () => [
      { after: 0, upTo: 600 },
      { after: 700, upTo: 1_300 },
    ];
    const received = {
      progress: async () => ({ position: 0, lost: 0 }),
      look: async () => ({ last: 1_300, gaps: gaps().filter(({ upTo }) => missed.has(upTo)) }),
    };
    const source = {
      read: async (_publisher: string, { after, up_to = 1_300 }: { after: number; up_to?: number }) => {
        counts.push(missing.count);
        return pageOf(missed, after, up_to);
      },
    };
    const missing = looksFor(received, source, {
      take: async ({ id }: { id: string }) => missed.delete(Number(id)) && 'done',
    });
    missing.start();
    await pass(10);
    await missing.stop();
    expect([...missed]).toEqual([]);
    expect(missing.count).toBe(0);
    const line = 'letters: 400 missing orders.placed fetched from orders; all of them were handled.';
    expect(jest.mocked(Logger.prototype.warn).mock.calls).toEqual([[line], [line], [line]]);
    // Nothing is known before the end of the first look, of two pages.
    expect(counts.slice(2)).not.toContain(0);
  });

  it('goes on at once with one publisher of an event while another does not answer', async () => {
    const taken: string[] = [];
    const received = { publishersOf: async () => ['shop', 'orders'] };
    const source = {
      read: async (publisher: string, { after }: { after: number }) => {
        if (publisher === 'shop') throw new AppError('deadline_exceeded', 'No answer.');
        return pageOf(upTo(1_000), after);
      },
    };
    const take = async ({ id }: { id: string }) => taken.push(id) && 'done';
    const missing = looksFor(received, source, { take, publisher: null });
    missing.start();
    await pass(10);
    await missing.stop();
    expect(taken).toHaveLength(1_000);
  });

  it('ends a look of more than 5 s after the 20 that it has claimed, says that some are missing, and goes on with the next', async () => {
    const taken: string[] = [];
    const take = async ({ id }: { id: string }) => {
      taken.push(id);
      return new Promise((resolve) => setTimeout(() => resolve('done'), 1_000));
    };
    const source = {
      read: async (_publisher: string, { after }: { after: number }) => pageOf(upTo(1_000), after),
    };
    const missing = looksFor({}, source, { take });
    missing.start();
    await pass(22_500);
    expect(missing.count).toBe(1);
    expect(taken).toEqual(upTo(23).map(String));
    const stopped = missing.stop();
    await pass(1_000);
    await stopped;
  });

  it('retries what failed after it has handled what never came, and begins no retry after 5 s of a look', async () => {
    const taken: [string, number][] = [];
    let last = 50;
    const source = {
      read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) =>
        pageOf(upTo(last), after, up_to),
    };
    const take = async ({ id }: { id: string }, attempt: number) => {
      taken.push([id, attempt]);
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, 1_000));
      return Number(id) > 50 ? 'done' : { retryAfterMs: 1 };
    };
    const missing = looksFor({}, source, { take, checkEveryMs: 1_000 });
    missing.start();
    await pass(0);
    expect(taken).toEqual(upTo(50).map((at) => [`${at}`, 1]));
    expect(missing.count).toBe(50);
    taken.length = 0;
    last = 51;
    missing.lookNow();
    await pass(2_500);
    last = 52;
    missing.lookNow();
    await pass(4_000);
    const retried = (...ids: string[]) => ids.map((id) => [id, 2]);
    expect(taken).toEqual([['51', 1], ...retried('1', '2', '3', '4', '5'), ['52', 1], ...retried('6')]);
    const stopped = missing.stop();
    await pass(1_000);
    await stopped;
  });

  it('keeps what it has claimed from other replicas, however slowly it handles that', async () => {
    const inbox = new InboxInMemory();
    const tries: string[] = [];
    const source = {
      read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) =>
        pageOf(upTo(20), after, up_to),
    };
    const take = async ({ id }: { id: string }) => {
      tries.push(id);
      return new Promise((resolve) => setTimeout(() => resolve('done'), 10_000));
    };
    const replicas = [1, 2].map(() => looksFor({}, source, { take, inbox }));
    for (const each of replicas) each.start();
    for (let looks = 0; looks < 20; looks += 1) {
      await pass(10_000);
      for (const each of replicas) each.lookNow();
    }
    await pass(0);
    await Promise.all(replicas.map((each) => each.stop()));
    expect(tries).toEqual(upTo(20).map(String));
  });

  it('goes on with what it has claimed where a delivery of one of these is frozen when it renews its claim', async () => {
    const [inbox, taken, renewals]: [InboxInMemory, string[], number[]] = [new InboxInMemory(), [], []];
    const postpone: InboxInMemory['postpone'] = async (consumer, ids, ms) => {
      renewals.push(ids.length);
      if (renewals.length > 1) return inbox.postpone(consumer, ids, ms);
      throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
    };
    const source = {
      read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) =>
        pageOf(upTo(20), after, up_to),
    };
    const take = async ({ id }: { id: string }) => {
      taken.push(id);
      return new Promise((resolve) => setTimeout(() => resolve('done'), 10_000));
    };
    const missing = looksFor({ postpone }, source, { take, inbox });
    missing.start();
    await pass(200_000);
    await missing.stop();
    expect(taken).toEqual(upTo(20).map(String));
    // At the first event after half of the time of the claim, at the next one, and after half of that time once more.
    expect(renewals.slice(0, 3)).toEqual([15, 14, 9]);
    const line = 'letters: 20 missing orders.placed fetched from orders; all of them were handled.';
    expect(jest.mocked(Logger.prototype.warn).mock.calls).toEqual([[line]]);
  });

  it('leaves out, until the next look, those whose claim takes longer than the database allows, as behind a delivery that is frozen', async () => {
    const [inbox, taken]: [InboxInMemory, string[]] = [new InboxInMemory(), []];
    const frozen = new Set(['1', '3']);
    const claim: InboxInMemory['claim'] = async (sequence, events, forMs) => {
      if (!events.some(({ id }) => frozen.has(id))) return inbox.claim(sequence, events, forMs);
      await new Promise((resolve) => setTimeout(resolve, 2_800));
      throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
    };
    const gaps = [1, 3, 6].map((at) => ({ after: at - 1, upTo: at }));
    const source = {
      read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) =>
        pageOf([1, 3, 6, 10], after, up_to),
    };
    const take = async ({ id }: { id: string }) => taken.push(id) && 'done';
    const missing = looksFor({ look: async () => ({ last: 9, gaps }), claim }, source, { take, inbox });
    missing.start();
    await pass(5_600);
    expect(taken).toEqual(['6', '10']);
    expect(missing.count).toBe(2);
    frozen.clear();
    missing.lookNow();
    await pass(0);
    await missing.stop();
    expect(taken).toEqual(['6', '10', '1', '3']);
    const line = 'letters: 2 missing orders.placed fetched from orders; all of them were handled.';
    const leftOut =
      'letters: 1 missing orders.placed wait for the next look, since a delivery of one of them has not ended or the database is slow.';
    expect(jest.mocked(Logger.prototype.warn).mock.calls).toEqual([[leftOut], [line], [line]]);
  });

  it('retries what failed also where it cannot ask for what never came', async () => {
    const tries: [string, number][] = [];
    let isBroken = false;
    const source = {
      read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) => {
        if (isBroken && up_to === undefined) throw new Error('It is broken.');
        return pageOf([1], after, up_to);
      },
    };
    const take = async ({ id }: { id: string }, attempt: number) => {
      tries.push([id, attempt]);
      return attempt === 1 ? { retryAfterMs: 1 } : 'done';
    };
    const missing = looksFor({}, source, { take, checkEveryMs: 1_000 });
    missing.start();
    await pass(0);
    isBroken = true;
    await pass(500);
    missing.lookNow();
    await pass(0);
    await missing.stop();
    expect(tries).toEqual([
      ['1', 1],
      ['1', 2],
    ]);
  });

  it('is one of at most four that fetch at a time, claims for one of its sequences at a time, and does not wait for one that is slow', async () => {
    const [inbox, taken]: [InboxInMemory, string[]] = [new InboxInMemory(), []];
    const [inHand, mostInHand]: [Map<string, number>, number[]] = [new Map(), []];
    const claim: InboxInMemory['claim'] = async (sequence, events, forMs) => {
      const own = await inbox.claim(sequence, events, forMs);
      inHand.set(sequence.eventName, own.size);
      mostInHand.push([...inHand.values()].filter((left) => left > 0).length);
      return own;
    };
    const source = {
      read: async (_publisher: string, { event_name, after }: { event_name: string; after: number }) =>
        pageOf(upTo(40), after, Infinity, event_name),
    };
    const take = async ({ id, name }: { id: string; name: string }) => {
      await new Promise((resolve) => setTimeout(resolve, name.startsWith('slow') ? 60_000 : 1));
      inHand.set(name, inHand.get(name)! - 1);
      taken.push(id);
      return 'done';
    };
    const quick = Array.from({ length: 5 }, (_, at) => [`${at}`, [`${at} placed `, `${at} paid `]]);
    const consumers = { slow: ['slow placed ', 'slow paid '], ...Object.fromEntries(quick) } as Record<
      string,
      string[]
    >;
    const missing = looksFor({ claim }, source, { take, inbox, consumers });
    missing.start();
    await pass(1_000);
    expect(taken).toHaveLength(5 * 2 * 40);
    expect(Math.max(...mostInHand)).toBe(4);
    const stopped = missing.stop();
    await pass(60_000);
    await stopped;
    expect([inHand.get('slow placed '), inHand.get('slow paid ')]).toEqual([19, undefined]);
  });

  it('looks for gaps from where there were none before, and from the beginning where the database may have lost what came last', async () => {
    const from: unknown[] = [];
    let last = 7;
    const look = async (...[, , , filledTo]: unknown[]) => {
      from.push(filledTo);
      return { last, filledTo: last };
    };
    let isBroken = false;
    const source = {
      read: async () => {
        if (isBroken) throw new Error('It is broken.');
        return pageOf([], 0);
      },
    };
    const missing = looksFor({ look }, source);
    const lookAgain = async () => {
      missing.lookNow();
      await pass(0);
    };
    missing.start();
    await pass(0);
    isBroken = true;
    await lookAgain();
    isBroken = false;
    await lookAgain();
    last = 6;
    await lookAgain();
    await lookAgain();
    await lookAgain();
    await missing.stop();
    expect(from).toEqual([0, 7, 0, 7, 0, 6]);
  });

  it('goes on at once where they are in very many places', async () => {
    const missed = new Set(Array.from({ length: 50 }, (_, at) => 2 * at + 1));
    const received = {
      progress: async () => ({ position: 0, lost: 0 }),
      look: async () => ({ last: 100, gaps: [...missed].map((upTo) => ({ after: upTo - 1, upTo })) }),
    };
    const source = {
      read: async (_publisher: string, { after }: { after: number }) => pageOf(missed, after, after + 1),
    };
    const missing = looksFor(received, source, {
      take: async ({ id }: { id: string }) => missed.delete(Number(id)) && 'done',
    });
    missing.start();
    await pass(10);
    await missing.stop();
    expect([...missed]).toEqual([]);
    expect(missing.count).toBe(0);
  });
});
