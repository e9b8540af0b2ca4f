import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { isAppError } from '@atoll/errors';
import { contextOf } from '@atoll/testing';
import { systemContext } from './call-context.js';
import type { Json } from './json.js';
import { WholeListings, type WholeListing } from './whole-listings.js';

const context = (deadlineMs = 60_000) => systemContext('spec', { deadlineMs });
const textOf = ({ parts }: Json<unknown>) => Buffer.concat(parts).toString();
const idsOf = (count: number) => Array.from({ length: count }, (_, n) => String(n));
const listingOf = (count: number, more: Partial<WholeListing> = {}): WholeListing => ({
  ids: () => Promise.resolve(idsOf(count)),
  entries: (ids) => Promise.resolve(ids.map((id) => ({ id }))),
  ...more,
});
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'made',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  );
const turn = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => void jest.useRealTimers());

/** Entries that come once they are let go. */
function heldEntries() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const held = {
    begun: 0,
    letGo: resolve,
    entries: async (ids: readonly string[]) => {
      held.begun += 1;
      await promise;
      return ids.map((id) => ({ id }));
    },
  };
  return held;
}

describe('a whole listing', () => {
  it.each([0, 1, 100, 101, 1_234])('of %i entries is their JSON, in order', async (count) => {
    const made = textOf(await new WholeListings().make('a', context(), listingOf(count)));
    expect(JSON.parse(made)).toEqual({ data: idsOf(count).map((id) => ({ id })) });
  });

  it('takes entries as JSON, and leaves out slices of which nothing is left', async () => {
    const entries = (ids: readonly string[]) =>
      Promise.resolve(ids[0] === '100' ? '' : ids.map((id) => `{"id":"${id}"}`).join(','));
    const made = textOf(await new WholeListings().make('a', context(), listingOf(250, { entries })));
    expect((JSON.parse(made) as { data: object[] }).data).toHaveLength(150);
  });

  it('lets others have the event loop after each hundred entries, however many are made at once', async () => {
    const listings = new WholeListings();
    let [inThisTurn, most, isDone] = [0, 0, false];
    const entries = (ids: readonly string[]) => {
      inThisTurn += ids.length;
      return Promise.resolve(ids.map((id) => ({ id })));
    };
    const made = Promise.all(
      ['a', 'b', 'c'].map((owner) => listings.make(owner, context(), listingOf(2_000, { entries }))),
    ).then(() => (isDone = true));
    // The first slice of each is made as it comes.
    await turn();
    inThisTurn = 0;
    let turns = 0;
    while (!isDone) {
      await turn();
      most = Math.max(most, inThisTurn);
      [inThisTurn, turns] = [0, turns + 1];
    }
    await made;
    expect(most).toBe(100);
    expect(turns).toBeGreaterThanOrEqual(3 * 19);
  });

  it('is one of two of its owner at once, while those of others and short ones go on', async () => {
    const listings = new WholeListings();
    const held = heldEntries();
    const long = [1, 2, 3].map(() => listings.make('a', context(), listingOf(200, held)));
    await turn();
    expect(held.begun).toBe(2);
    await listings.make('a', context(), listingOf(100));
    await listings.make('b', context(), listingOf(200));
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    const refused = codeOf(listings.make('a', context(20_000), listingOf(200)));
    // Half of its deadline, so that its caller hears of it.
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await Promise.race([refused, turn()])).toBe('too_many_requests');
    jest.useRealTimers();
    held.letGo();
    await Promise.all(long);
    expect(await codeOf(listings.make('a', context(), listingOf(200)))).toBe('made');
  });

  it('is one of two of its caller at once, in however many teams; the operator has no such bound', async () => {
    const listings = new WholeListings();
    const held = heldEntries();
    const by = (userId: string, platformAdmin = false) => contextOf({ userId, platformAdmin });
    const long = ['a', 'b', 'c', 'one'].map((team) => listings.make(team, by('one'), listingOf(200, held)));
    await turn();
    expect(held.begun).toBe(2);
    const others = [by('another'), by('operator', true), by('operator', true), by('operator', true)];
    const made = others.map((context, at) => listings.make(`other ${at}`, context, listingOf(200, held)));
    await turn();
    expect(held.begun).toBe(6);
    held.letGo();
    await Promise.all([...long, ...made]);
  });

  it('is one of two of its caller whose ids are read at once', async () => {
    const listings = new WholeListings();
    const { promise, resolve } = Promise.withResolvers<string[]>();
    let begun = 0;
    const ids = () => {
      begun += 1;
      return promise;
    };
    const one = contextOf({ userId: 'one' });
    const made = ['a', 'b', 'c'].map((team) => listings.make(team, one, listingOf(0, { ids })));
    await turn();
    expect(begun).toBe(2);
    resolve([]);
    await Promise.all(made);
    expect(begun).toBe(3);
  });

  it('waits for half of its deadline in all, wherever it waits', async () => {
    const listings = new WholeListings();
    const [looks, entries] = [Promise.withResolvers<void>(), heldEntries()];
    const one = (ms: number) => ({ ...contextOf({ userId: 'one' }), deadlineAtMs: Date.now() + ms });
    const busy = [1, 2].map(() => listings.make('a', context(), listingOf(200, entries)));
    const ids = () => looks.promise.then(() => idsOf(0));
    const looking = [1, 2].map(() => listings.make('b', one(60_000), listingOf(0, { ids })));
    await turn();
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    const refused = codeOf(listings.make('a', one(20_000), listingOf(200)));
    await jest.advanceTimersByTimeAsync(9_000);
    looks.resolve();
    await jest.advanceTimersByTimeAsync(999);
    expect(await Promise.race([refused, turn()])).toBeUndefined();
    await jest.advanceTimersByTimeAsync(1);
    expect(await Promise.race([refused, turn()])).toBe('too_many_requests');
    jest.useRealTimers();
    entries.letGo();
    await Promise.all([...busy, ...looking]);
  });

  it('is, of more than ten thousand entries, one of four of all owners at once', async () => {
    const listings = new WholeListings();
    const held = heldEntries();
    const large = ['a', 'a', 'b', 'b', 'c'].map((owner) => listings.make(owner, context(), listingOf(10_001, held)));
    await turn();
    expect(held.begun).toBe(4);
    await listings.make('d', context(), listingOf(10_000));
    expect(await codeOf(listings.make('d', context(20), listingOf(10_001)))).toBe('unavailable');
    held.letGo();
    await Promise.all(large);
  });

  it('is refused where it becomes larger than an answer may be, and says to send limit', async () => {
    const entries = (ids: readonly string[]) => Promise.resolve(ids.map(() => ({ text: 'x'.repeat(10_000) })));
    const made = (count: number) => new WholeListings(1024 * 1024).make('a', context(), listingOf(count, { entries }));
    await expect(made(200)).rejects.toMatchObject({
      code: 'invalid_input',
      message: 'limit must be sent: the whole listing would be larger than 1 MiB.',
    });
    expect(textOf(await made(100))).toHaveLength(100 * 10_012 + 10);
  });

  it('ends between two slices once its time is over', async () => {
    const called = { ...context(), deadlineAtMs: Date.now() + 60_000 };
    const asked: number[] = [];
    const entries = (ids: readonly string[]) => {
      asked.push(ids.length);
      if (asked.length === 2) called.deadlineAtMs = Date.now();
      return Promise.resolve(ids.map((id) => ({ id })));
    };
    expect(await codeOf(new WholeListings().make('a', called, listingOf(1_000, { entries })))).toBe(
      'deadline_exceeded',
    );
    expect(asked).toEqual([100, 100]);
  });
});
