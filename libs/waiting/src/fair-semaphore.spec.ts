import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { FairSemaphore, type AcquireOptions, type Refused, type SemaphoreBounds } from './fair-semaphore.js';

class Refusal extends Error {
  constructor(readonly why: Refused) {
    super('refused');
  }
}

const semaphoreOf = (bounds: SemaphoreBounds) => new FairSemaphore(bounds, (why) => new Refusal(why));
/** Lets everything that is due happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] }));
afterEach(() => void jest.useRealTimers());

/** Work that waits for a permit, then runs until it is told to end or to fail. */
class Work {
  state: 'waiting' | 'running' | 'done' | 'failed' | 'refused' | 'aborted' = 'waiting';
  why: Refused | undefined;
  readonly #abortion = new AbortController();
  readonly #running = Promise.withResolvers<void>();

  constructor(
    semaphore: FairSemaphore,
    readonly key: string,
    readonly options: Omit<AcquireOptions, 'signal' | 'key'> = {},
    onStart: (work: Work) => void = () => undefined,
  ) {
    const run = () => {
      onStart(this);
      this.state = 'running';
      return this.#running.promise;
    };
    semaphore.run(run, { ...options, key, signal: this.#abortion.signal }).catch((error: unknown) => {
      this.why = error instanceof Refusal ? error.why : undefined;
      if (this.state === 'waiting') this.state = this.why ? 'refused' : 'aborted';
    });
  }

  end = () => {
    this.state = 'done';
    this.#running.resolve();
  };

  fail = () => {
    this.state = 'failed';
    this.#running.reject(new Error('broken'));
  };

  abort = () => this.#abortion.abort();
}

/** All work that a semaphore was asked for, and what its laws say of it. */
class Observed {
  readonly all: Work[] = [];
  readonly #semaphore: FairSemaphore;
  /** Of each key that waits and holds nothing: the permits that others were given meanwhile. */
  readonly #passedBy = new Map<string, Map<string, number>>();
  /** Permits that were given to another than whose turn it was. */
  readonly #unfair: string[] = [];

  constructor(private readonly bounds: Required<SemaphoreBounds>) {
    this.#semaphore = semaphoreOf(bounds);
  }

  async begin(key: string, options: Work['options']): Promise<void> {
    const isTooLong =
      this.of('waiting').length >= this.bounds.maxWaiting ||
      this.of('waiting', key).length >= this.bounds.maxWaitingPerKey;
    const work = new Work(this.#semaphore, key, options, (started) => this.#started(started));
    this.all.push(work);
    const isRunning = work.state === 'running';
    await settle();
    if (isRunning) expect(work.state).toBe('running');
    else expect(work.state).toBe(isTooLong && !options.isUrgent ? 'refused' : 'waiting');
  }

  of(state: Work['state'], key?: string): Work[] {
    return this.all.filter((work) => work.state === state && (key === undefined || work.key === key));
  }

  get #waitingKeys(): string[] {
    return [...new Set(this.of('waiting').map(({ key }) => key))];
  }

  /** `work` was given a permit: those that wait and hold nothing have been passed by once more. */
  #started(work: Work): void {
    const line = this.of('waiting', work.key);
    const urgent = line.filter(({ options }) => options.isUrgent);
    const [first = work] = urgent.length > 0 ? urgent : line;
    if (first !== work) this.#unfair.push(`${work.key} has another that came before`);
    this.#passedBy.delete(work.key);
    for (const key of this.#waitingKeys) {
      const held = this.of('running', key).length;
      if (held < this.bounds.permitsPerKey && held < this.of('running', work.key).length)
        this.#unfair.push(`${work.key} holds more than ${key}`);
      if (key === work.key || held > 0) continue;
      const passedBy = this.#passedBy.get(key) ?? new Map<string, number>();
      this.#passedBy.set(key, passedBy.set(work.key, (passedBy.get(work.key) ?? 0) + 1));
    }
  }

  check(): void {
    expect(this.#unfair).toEqual([]);
    const running = this.of('running');
    const runningOf = (key: string) => this.of('running', key).length;
    const waiting = this.of('waiting').filter(({ options }) => !options.isUrgent);
    expect(running.length).toBeLessThanOrEqual(this.bounds.permits);
    for (const { key } of running) expect(runningOf(key)).toBeLessThanOrEqual(this.bounds.permitsPerKey);
    expect(waiting.length).toBeLessThanOrEqual(this.bounds.maxWaiting);
    for (const { key } of waiting)
      expect(waiting.filter((one) => one.key === key).length).toBeLessThanOrEqual(this.bounds.maxWaitingPerKey);
    // Nobody waits beside a permit that is free.
    if (running.length < this.bounds.permits)
      for (const key of this.#waitingKeys) expect(runningOf(key)).toBe(this.bounds.permitsPerKey);
    for (const [key, passedBy] of this.#passedBy) {
      if (this.of('waiting', key).length === 0) this.#passedBy.delete(key);
      else for (const times of passedBy.values()) expect(times).toBe(1);
    }
  }
}

const bound = (max: number) => fc.oneof(fc.integer({ min: 1, max }), fc.constant(Infinity));
const bounds = fc.record({
  permits: bound(4),
  permitsPerKey: bound(3),
  maxWaiting: bound(6),
  maxWaitingPerKey: bound(4),
  patienceMs: fc.constantFrom(30, Infinity),
});
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), isUrgent: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('end' as const, 'fail' as const), at: fc.nat(7) }) },
    fc.record({ does: fc.constant('abort' as const), at: fc.nat(7) }),
    fc.record({ passMs: fc.integer({ min: 1, max: 20 }) }),
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
);

it('law: whatever ends, fails or gives up, the bounds hold, no permit is idle or lost, each key is served in order, and one that holds none lets each other key pass once', async () => {
  await fc.assert(
    fc.asyncProperty(bounds, steps, async (given, drawn) => {
      const observed = new Observed(given);
      const next = async (step: (typeof drawn)[number]) => {
        if ('key' in step) await observed.begin(step.key, { isUrgent: step.isUrgent });
        else if ('passMs' in step) jest.advanceTimersByTime(step.passMs);
        else observed.of(step.does === 'abort' ? 'waiting' : 'running')[step.at]?.[step.does]();
        await settle();
        observed.check();
      };
      for (const step of drawn) await next(step);
      while (observed.of('running').length > 0) await next({ does: 'end', at: 0 });
      expect(observed.of('waiting')).toEqual([]);
      // Every permit has come back.
      const fresh = Math.min(given.permits, given.permitsPerKey, 5);
      for (let count = 0; count < fresh; count += 1) await observed.begin('a', { isUrgent: false });
      expect(observed.of('running')).toHaveLength(fresh);
    }),
    runs(100),
  );
});

const keyPairs = fc.record({
  key: fc.constantFrom('a', 'b', 'c'),
  alsoKey: fc.constantFrom(undefined, 'x', 'y', 'a'),
});

it('law: a permit counts for both keys from when it is given, whoever has room for both has it, in the order of the line', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ permits: bound(4), permitsPerKey: bound(3) }),
      fc.array(
        fc.oneof(keyPairs, fc.record({ does: fc.constantFrom('end' as const, 'abort' as const), at: fc.nat(7) })),
        {
          minLength: 1,
          maxLength: 60,
          size: 'max',
        },
      ),
      async ({ permits, permitsPerKey }, drawn) => {
        const semaphore = semaphoreOf({ permits, permitsPerKey });
        const all: Work[] = [];
        const of = (state: Work['state']) => all.filter((work) => work.state === state);
        const isOf = (key: string | undefined) => (work: Work) => work.key === key || work.options.alsoKey === key;
        const hasRoom = (work: Work) =>
          of('running').length < permits &&
          [work.key, work.options.alsoKey].every(
            (key) => key === undefined || of('running').filter(isOf(key)).length < permitsPerKey,
          );
        const overtaken: Work[] = [];
        const start = (started: Work) => {
          const before = of('waiting').filter(({ key }) => key === started.key);
          overtaken.push(...before.slice(0, Math.max(0, before.indexOf(started))).filter(hasRoom));
        };
        const next = async (step: (typeof drawn)[number]) => {
          if ('at' in step) of(step.does === 'abort' ? 'waiting' : 'running')[step.at]?.[step.does]();
          else all.push(new Work(semaphore, step.key, { alsoKey: step.alsoKey }, start));
          await settle();
          expect(of('running').length).toBeLessThanOrEqual(permits);
          for (const key of ['a', 'b', 'c', 'x', 'y'])
            expect(of('running').filter(isOf(key)).length).toBeLessThanOrEqual(permitsPerKey);
          expect(of('waiting').filter(hasRoom)).toEqual([]);
          expect(overtaken).toEqual([]);
        };
        for (const step of drawn) await next(step);
        while (of('running').length > 0) await next({ does: 'end', at: 0 });
        expect(of('waiting')).toEqual([]);
      },
    ),
    runs(100),
  );
});

describe('a permit', () => {
  it('goes to the key that holds the fewest, and to its urgent work first', async () => {
    const semaphore = semaphoreOf({ permits: 2 });
    const order: string[] = [];
    const begin = (key: string, isUrgent = false) =>
      new Work(semaphore, key, { isUrgent }, () => order.push(isUrgent ? `urgent ${key}` : key));
    const all = [begin('a'), begin('a'), begin('a'), begin('a', true), begin('b')];
    for (const { end } of all) {
      end();
      await settle();
    }
    expect(order).toEqual(['a', 'a', 'b', 'urgent a', 'a']);
  });

  it('goes on without a look at every key that waits', async () => {
    const semaphore = semaphoreOf({ permits: 2, permitsPerKey: 2 });
    const [release] = [await semaphore.acquire({ key: 'a' }), await semaphore.acquire({ key: 'b' })];
    const waiting = Array.from({ length: 1_000 }, (_, key) => new Work(semaphore, `${key}`));
    const looks = jest.spyOn(Map.prototype, 'get');
    release();
    const { length } = looks.mock.calls;
    looks.mockRestore();
    expect(length).toBeLessThan(10);
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(['running', ...Array<string>(999).fill('waiting')]);
  });

  it('is released once, however often its holder says so', async () => {
    const semaphore = semaphoreOf({ permits: 1 });
    const release = await semaphore.acquire();
    const others = [new Work(semaphore, ''), new Work(semaphore, '')];
    release();
    release();
    await settle();
    expect(others.map(({ state }) => state)).toEqual(['running', 'waiting']);
  });

  it('is not given to whoever has given up before, although one is free', async () => {
    const reason = new Error('given up');
    const signal = AbortSignal.abort(reason);
    await expect(semaphoreOf({ permits: 1 }).acquire({ signal })).rejects.toBe(reason);
  });

  it('that was given is kept: neither patience nor a signal takes it back', async () => {
    const semaphore = semaphoreOf({ permits: 1, patienceMs: 1_000 });
    const [first, next] = [new Work(semaphore, ''), new Work(semaphore, '')];
    first.end();
    await settle();
    expect(jest.getTimerCount()).toBe(0);
    const last = new Work(semaphore, '');
    next.abort();
    await settle();
    expect([next.state, last.state]).toEqual(['running', 'waiting']);
    next.end();
    await settle();
    expect(last.state).toBe('running');
  });
});

describe('a refusal', () => {
  it('says whether the key itself is in the way, and comes at once where there are too many waiters', async () => {
    const semaphore = semaphoreOf({ permits: 3, permitsPerKey: 2, maxWaiting: 0 });
    const all = ['a', 'a', 'b', 'a', 'b'].map((key) => new Work(semaphore, key));
    await settle();
    const [own, common] = all.slice(3).map(({ why }) => why);
    expect(own).toEqual({ waitedMs: 0, isKeyFull: true, isStalled: false });
    expect(common).toEqual({ waitedMs: 0, isKeyFull: false, isStalled: false });
  });

  it('says that a key is in the way where the second one is', async () => {
    const semaphore = semaphoreOf({ permitsPerKey: 1, maxWaiting: 0 });
    const [, late] = [new Work(semaphore, 'a', { alsoKey: 'x' }), new Work(semaphore, 'b', { alsoKey: 'x' })];
    await settle();
    expect(late?.why).toMatchObject({ isKeyFull: true });
  });

  it('says how long it has waited, and whether its key was served meanwhile', async () => {
    const semaphore = semaphoreOf({ permitsPerKey: 2, patienceMs: 60_000 });
    const [first] = [new Work(semaphore, 'a'), new Work(semaphore, 'a')];
    const hasty = new Work(semaphore, 'a', { patienceMs: 1_000 });
    jest.advanceTimersByTime(999);
    await settle();
    expect(hasty.state).toBe('waiting');
    jest.advanceTimersByTime(1);
    await settle();
    expect(hasty.why).toEqual({ waitedMs: 1_000, isKeyFull: true, isStalled: true });
    const [, late] = [new Work(semaphore, 'a'), new Work(semaphore, 'a', { patienceMs: 1_000 })];
    first?.end();
    await settle();
    jest.advanceTimersByTime(1_000);
    await settle();
    expect(late?.why).toEqual({ waitedMs: 1_000, isKeyFull: true, isStalled: false });
  });
});
