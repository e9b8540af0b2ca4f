import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { jetstreamManager } from '@nats-io/jetstream';
import { Logger } from '@nestjs/common';
import { connect, millis, type NatsConnection } from '@nats-io/transport-node';
import { runs, startNats, timeoutFactor, type NatsServer } from '@atoll/testing';
import { assert, asyncProperty, integer } from 'fast-check';
import type { Demand } from './buckets.js';
import { MemoryBuckets } from './memory-buckets.js';
import { NatsBuckets, type NatsBucketsOptions } from './nats-buckets.js';
import { NatsClock } from './nats-clock.js';

let server: NatsServer;
beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server.stop());

const entryOf = (key: string) => `$KV.atoll_rate_limits.${createHash('sha256').update(key).digest('hex')}`;

describe('buckets in NATS', () => {
  const connections: NatsConnection[] = [];
  const nowMs = 1_000_000;
  let first: NatsBuckets;
  let second: NatsBuckets;

  const open = async (options: Partial<NatsBucketsOptions> = {}): Promise<NatsBuckets> => {
    const connection = await connect({ servers: server.url, reconnectTimeWait: 20, maxReconnectAttempts: -1 });
    connections.push(connection);
    const now = () => Promise.resolve(nowMs);
    const patient = { connection: () => connection, answerWithinMs: 10_000 * timeoutFactor };
    return new NatsBuckets({
      ...patient,
      local: new MemoryBuckets(() => nowMs),
      now,
      longestRefillMs: 60_000,
      ...options,
    });
  };
  const take = (buckets: NatsBuckets, key: string, capacity: number) =>
    buckets.increment(key, 60_000, capacity, 0, 'key');

  beforeEach(async () => {
    [first, second] = await Promise.all([open(), open()]);
  });
  afterEach(async () => {
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
  });

  it('law: replicas together grant a bucket no more than one of them alone would', async () => {
    const taken = await Promise.all(
      Array.from({ length: 60 }, (_, index) => take(index % 2 ? first : second, 'shared', 20)),
    );
    expect(taken.filter(({ isBlocked }) => !isBlocked)).toHaveLength(20);
    expect((await take(first, 'shared', 20)).isBlocked).toBe(true);
    expect((await take(second, 'shared', 20)).isBlocked).toBe(true);
    expect((await take(second, 'another', 20)).isBlocked).toBe(false);
  });

  it('law: of several buckets a request takes of each or of none, whatever replicas ask at once', async () => {
    const of = (key: string, capacity: number): Demand => ({ name: 'key', key, capacity, refillMs: 60_000 });
    const [wide, narrow] = [of('wide', 40), of('narrow', 7)];
    const ask = (index: number) =>
      (index % 2 ? first : second).incrementAll(index % 3 ? [wide, narrow] : [narrow, wide]);
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => ask(index)));
    const granted = answers.filter((records) => records.every(({ isBlocked }) => !isBlocked));
    expect(granted).toHaveLength(7);
    // What the refused ones took of the wide bucket is back: 40 less 7.
    expect((await take(first, 'wide', 40)).totalHits).toBe(8);
    expect((await second.incrementAll([wide, narrow])).map(({ isBlocked }) => isBlocked)).toEqual([false, true]);
  });

  it('law: a bucket of which several replicas take all the time is shared all the same', async () => {
    const replicas = [first, second, await open(), await open()];
    const clients = replicas.flatMap((replica) => Array.from({ length: 10 }, () => replica));
    const granted = await Promise.all(
      clients.map(async (replica) => {
        let tokens = 0;
        for (let calls = 0; calls < 50; calls += 1) if (!(await take(replica, 'hot', 1_800)).isBlocked) tokens += 1;
        return tokens;
      }),
    );
    expect(granted.reduce((sum, tokens) => sum + tokens)).toBe(1_800);
  });

  it('law: replicas whose clocks differ grant a bucket together what one of them alone would', async () => {
    // As 60 tokens in 6 s and clocks 5 s off are, but in hours: while the spec runs, no token comes back.
    const hourMs = 3_600_000;
    const openAt = (offMs: number) => {
      const clock = new NatsClock(() => Date.now() + offMs);
      return open({ now: (kv) => clock.now(kv) });
    };
    const [ahead, behind] = await Promise.all([openAt(5 * hourMs), openAt(-5 * hourMs)]);
    for (const replicas of [
      [ahead, behind],
      [behind, ahead],
    ] as const) {
      const key = replicas[0] === ahead ? 'ahead first' : 'behind first';
      const of = (index: number) => (index < 20 ? replicas[0] : index < 40 ? replicas[1] : replicas[index % 2]);
      const granted: boolean[] = [];
      for (let index = 0; index < 64; index += 1) {
        const record = await of(index)?.increment(key, 6 * hourMs, 60, 0, 'key');
        granted.push(record?.isBlocked === false);
      }
      expect(granted).toEqual(Array.from({ length: 64 }, (_, index) => index < 60));
      const demand: Demand = { name: 'key', key, capacity: 60, refillMs: 6 * hourMs };
      const fresh: Demand = { ...demand, key: `${key}, another` };
      for (const replica of replicas)
        expect((await replica.incrementAll([fresh, demand])).map(({ isBlocked }) => isBlocked)).toEqual([false, true]);
    }
  });

  it('law: whoever waits for as long as it is told is granted, however far the clock of NATS was set back', async () => {
    let [timeMs, cases] = [0, 0];
    const buckets = await open({ now: () => Promise.resolve(timeMs) });
    await assert(
      asyncProperty(
        integer({ min: 0, max: 7 * 86_400_000 }),
        integer({ min: 1, max: 4 }),
        integer({ min: 1, max: 2 }),
        async (backMs, capacity, count) => {
          timeMs = nowMs + backMs;
          cases += 1;
          const demands = Array.from({ length: count }, (_, at) => {
            return { name: 'key', key: `set back ${cases} ${at}`, capacity, refillMs: 60_000 };
          });
          for (let taken = 0; taken < capacity; taken += 1) await buckets.incrementAll(demands);
          timeMs = nowMs;
          const refused = await buckets.incrementAll(demands);
          timeMs += Math.max(...refused.map(({ timeToBlockExpire }) => timeToBlockExpire)) * 1_000;
          const granted = await buckets.incrementAll(demands);
          expect([refused, granted].map((all) => all.some(({ isBlocked }) => isBlocked))).toEqual([true, false]);
        },
      ),
      runs(20),
    );
  });

  it('live as long as the longest limit of all replicas needs, also in a store that another one created', async () => {
    const connection = await connect({ servers: server.url });
    connections.push(connection);
    const { streams } = await jetstreamManager(connection);
    const lifeMs = async () => millis((await streams.info('KV_atoll_rate_limits')).config.max_age);
    await take(first, 'short', 5);
    expect(await lifeMs()).toBe(120_000);
    const demand: Demand = { name: 'key', key: 'daily', capacity: 5, refillMs: 86_400_000 };
    const daily = await open({ longestRefillMs: demand.refillMs });
    expect(await daily.incrementAll([demand])).toMatchObject([{ isBlocked: false }]);
    expect(await lifeMs()).toBe(2 * demand.refillMs);
    await take(await open(), 'short', 5);
    expect(await lifeMs()).toBe(2 * demand.refillMs);
    await streams.update('KV_atoll_rate_limits', { max_age: 0 });
    await take(await open(), 'short', 5);
    expect(await lifeMs()).toBe(0);
  });

  it('take a returned token back, so that another replica may take it', async () => {
    expect((await take(first, 'returned', 1)).isBlocked).toBe(false);
    expect((await take(second, 'returned', 1)).isBlocked).toBe(true);
    await second.decrement({ name: 'key', key: 'returned', capacity: 1, refillMs: 60_000 });
    expect((await take(first, 'returned', 1)).isBlocked).toBe(false);
    expect((await take(second, 'returned', 1)).isBlocked).toBe(true);
  });

  describe('where another replica changes a bucket before this one can', () => {
    const warnings: string[] = [];
    let local: MemoryBuckets;
    let counted: jest.SpiedFunction<MemoryBuckets['increment']>;
    let late: NatsBuckets;
    /** How many times another one is faster. */
    let outrun = 0;
    let tries = 0;
    /** How much of the time for all tries each of them takes. */
    let share = 1;
    let isMeasured = true;

    beforeEach(async () => {
      jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => void warnings.push(message));
      warnings.length = 0;
      local = new MemoryBuckets(() => nowMs);
      counted = jest.spyOn(local, 'increment');
      const connection = await connect({ servers: server.url });
      connections.push(connection);
      [tries, isMeasured] = [0, false];
      // The first question measures the clock; the others come between the read of a bucket and its write.
      const now = () => {
        if (isMeasured) {
          tries += 1;
          if (tries <= outrun) connection.publish(entryOf('crowded'), String(nowMs));
        }
        isMeasured = true;
        return Promise.resolve(nowMs);
      };
      const answerWithinMs = 10_000 * timeoutFactor;
      jest.spyOn(performance, 'now').mockImplementation(() => tries * share * answerWithinMs);
      late = await open({ connection: () => connection, local, now, answerWithinMs });
    });
    afterEach(() => {
      jest.restoreAllMocks();
    });

    it('tries five times where two take longer than all may', async () => {
      [outrun, share] = [4, 0.7];
      expect((await take(late, 'crowded', 2)).isBlocked).toBe(false);
      expect([tries, counted.mock.calls.length, warnings]).toEqual([5, 0, []]);
    });

    it('counts by itself after three times the time for all tries, however few there were', async () => {
      [outrun, share] = [Infinity, 1.5];
      expect((await take(late, 'crowded', 2)).isBlocked).toBe(false);
      expect([tries, counted.mock.calls.length]).toEqual([2, 1]);
    });

    it('counts by itself after the time for all tries, says so once a minute, and shares the rest', async () => {
      [outrun, share] = [Infinity, 1 / 8];
      expect((await take(late, 'crowded', 2)).isBlocked).toBe(false);
      expect([tries, counted.mock.calls.length]).toEqual([8, 1]);
      [tries, isMeasured] = [0, false];
      expect((await take(late, 'crowded', 2)).isBlocked).toBe(false);
      expect(warnings).toEqual([expect.stringMatching(/^Other gateways were always faster .* a caller may send more/)]);
      outrun = 0;
      expect((await take(late, 'rest', 1)).isBlocked).toBe(false);
      expect((await take(second, 'rest', 1)).isBlocked).toBe(true);
      expect(counted).toHaveBeenCalledTimes(2);
    });
  });

  it('measures the clock before it reads a bucket, so that others cannot change that meanwhile', async () => {
    const connection = await connect({ servers: server.url });
    connections.push(connection);
    let [questions, writes] = [0, 0];
    const now = () => {
      questions += 1;
      // As long as the measurement of a slow clock, others change the bucket.
      if (questions === 1) connection.publish(entryOf('measured'), String(nowMs));
      return Promise.resolve(nowMs);
    };
    const watching = await connect({ servers: server.url });
    connections.push(watching);
    watching.subscribe(entryOf('measured'), { callback: () => void (writes += 1) });
    await watching.flush();
    const measuring = await open({ connection: () => connection, now });
    expect((await take(measuring, 'measured', 1)).isBlocked).toBe(false);
    await watching.flush();
    // Its own write took effect at once, beside that of the other.
    expect([questions, writes]).toEqual([2, 2]);
  });

  it('takes keys of any form', async () => {
    const key = 'anonymous:2001:db8::/64 *.> é';
    expect((await take(first, key, 1)).isBlocked).toBe(false);
    expect((await take(second, key, 1)).isBlocked).toBe(true);
  });

  it('falls back to the buckets of the process where there is no connection', async () => {
    const cut = await open({ connection: () => undefined });
    const blocked = [];
    for (let index = 0; index < 4; index++) blocked.push((await take(cut, 'cut off', 3)).isBlocked);
    expect(blocked).toEqual([false, false, false, true]);
  });

  it('says at once that it counts by itself for another cause than before, and once a minute for one cause', async () => {
    const warnings: string[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => void warnings.push(message));
    let timeMs = 0;
    jest.spyOn(performance, 'now').mockImplementation(() => (timeMs += 1_001));
    try {
      const connection = await connect({ servers: server.url });
      connections.push(connection);
      let cause = new Error('one');
      const failing = await open({ connection: () => connection, now: () => Promise.reject(cause) });
      await take(failing, 'failing', 3);
      await take(failing, 'failing', 3);
      cause = new TypeError('another');
      await take(failing, 'failing', 3);
      expect(warnings).toEqual([
        expect.stringMatching(/: Error: one$/),
        expect.stringMatching(/: TypeError: another$/),
      ]);
    } finally {
      jest.restoreAllMocks();
    }
  });

  it('is shared again a second after a failure, although the clock was set back meanwhile', async () => {
    const connection = await connect({ servers: server.url });
    connections.push(connection);
    let isCut = true;
    const cut = await open({ connection: () => (isCut ? undefined : connection) });
    const [realNow, realElapsed] = [Date.now, performance.now.bind(performance)];
    await take(cut, 'back', 1);
    isCut = false;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 3_600_000);
    const elapsed = jest.spyOn(performance, 'now').mockImplementation(() => realElapsed() + 1_000);
    try {
      await take(cut, 'shared again', 1);
    } finally {
      clock.mockRestore();
      elapsed.mockRestore();
    }
    expect((await take(second, 'shared again', 1)).isBlocked).toBe(true);
  });

  it('falls back while the server is frozen, without keeping anybody waiting for long', async () => {
    const hasty = await open({ answerWithinMs: 300 });
    await take(hasty, 'warm', 2);
    await server.pause();
    try {
      const records = await Promise.all([take(hasty, 'frozen', 2), take(hasty, 'frozen', 2), take(hasty, 'frozen', 2)]);
      expect(records.map(({ isBlocked }) => isBlocked)).toEqual([false, false, true]);
    } finally {
      server.resume();
    }
  });
});
