import { contextOf } from '@atoll/testing';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SearchBounds } from './search-bounds.js';

/** A search that runs until it is ended. */
class Search {
  /** `waiting`, `running`, `found`, or the code of its refusal. */
  state = 'waiting';
  end: () => void = () => undefined;

  constructor(bounds: SearchBounds, teamId: string, userId: string, heldBy?: string) {
    const search = () => {
      this.state = 'running';
      return new Promise<void>((resolve) => (this.end = resolve));
    };
    const context = {
      ...contextOf({ userId, ...(heldBy !== undefined && { heldBy }) }),
      deadlineAtMs: Date.now() + 5_000,
    };
    bounds.run(teamId, context, search).then(
      () => (this.state = 'found'),
      ({ code }: { code: string }) => (this.state = code),
    );
  }
}

const settle = () => jest.advanceTimersByTimeAsync(0);

let bounds: SearchBounds;
beforeEach(() => {
  jest.useFakeTimers();
  bounds = new SearchBounds();
});
afterEach(() => void jest.useRealTimers());

/** Begins so many searches, each of another user unless given, in this order. */
async function begin(count: number, teamOf: (at: number) => string, userOf = (at: number) => `${teamOf(at)} ${at}`) {
  const searches = Array.from({ length: count }, (_, at) => new Search(bounds, teamOf(at), userOf(at)));
  await settle();
  return searches;
}

const statesOf = (searches: readonly Search[]) => searches.map(({ state }) => state);

describe('searches of a team', () => {
  it('run two at once, two more wait, and the next is refused at once as the team’s own doing', async () => {
    const searches = await begin(5, () => 'ours');
    expect(statesOf(searches)).toEqual(['running', 'running', 'waiting', 'waiting', 'too_many_requests']);
    searches[0]?.end();
    await settle();
    expect(statesOf(searches).slice(0, 3)).toEqual(['found', 'running', 'running']);
  });

  it('are not refused for those of others: the next place goes to the team that holds none', async () => {
    const theirs = await begin(12, (at) => `team ${at % 3}`);
    const [ours] = await begin(1, () => 'ours');
    expect(statesOf(theirs).filter((state) => state === 'running')).toHaveLength(6);
    expect(ours?.state).toBe('waiting');
    theirs[0]?.end();
    await settle();
    expect(ours?.state).toBe('running');
  });

  it('wait for others for half of their deadline, and for their own team as long', async () => {
    const theirs = await begin(6, (at) => `team ${at % 3}`);
    const waiting = [...(await begin(1, () => 'ours')), ...(await begin(1, () => 'team 0'))];
    await jest.advanceTimersByTimeAsync(2_499);
    expect(statesOf(waiting)).toEqual(['waiting', 'waiting']);
    await jest.advanceTimersByTimeAsync(1);
    expect(statesOf(waiting)).toEqual(['unavailable', 'too_many_requests']);
    expect(statesOf(theirs)).toEqual(Array.from({ length: 6 }, () => 'running'));
  });
});

describe('searches of a user', () => {
  it('run four at once in however many teams, and leave the other places to others', async () => {
    const theirs = await begin(
      9,
      (at) => `team ${at}`,
      () => 'a user of many teams',
    );
    expect(statesOf(theirs)).toEqual([
      ...Array.from({ length: 4 }, () => 'running'),
      ...Array.from({ length: 4 }, () => 'waiting'),
      'too_many_requests',
    ]);
    expect(statesOf(await begin(2, () => 'ours'))).toEqual(['running', 'running']);
  });

  it('by keys of people in many teams that one user holds are together those of one user, apart from that one', async () => {
    const theirs = Array.from({ length: 5 }, (_, at) => new Search(bounds, `team ${at}`, `user ${at}`, 'holder'));
    theirs.push(new Search(bounds, 'another team', 'holder'));
    await settle();
    expect(statesOf(theirs)).toEqual([...Array.from({ length: 4 }, () => 'running'), 'waiting', 'running']);
  });

  it('wait for half of their deadline in all, for the user and then for the team', async () => {
    const user = () => 'a user of many teams';
    const first = await begin(4, (at) => `team ${at}`, user);
    await begin(2, () => 'ours');
    const [last] = await begin(1, () => 'ours', user);
    await jest.advanceTimersByTimeAsync(2_000);
    first[0]?.end();
    await jest.advanceTimersByTimeAsync(499);
    expect(last?.state).toBe('waiting');
    await jest.advanceTimersByTimeAsync(1);
    expect(last?.state).toBe('too_many_requests');
  });
});
