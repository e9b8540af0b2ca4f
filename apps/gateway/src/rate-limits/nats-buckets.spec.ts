import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { startNats, type NatsServer } from '@atoll/testing';
import { MemoryBuckets } from './memory-buckets.js';
import { NatsBuckets } from './nats-buckets.js';

let server: NatsServer;
beforeAll(async () => {
  server = await startNats();
}, 120_000);
afterAll(() => server.stop());

describe('buckets in NATS', () => {
  const connections: NatsConnection[] = [];
  const nowMs = 1_000_000;
  let first: NatsBuckets;
  let second: NatsBuckets;

  const open = async (connectionOf?: () => NatsConnection | undefined): Promise<NatsBuckets> => {
    const connection = await connect({ servers: server.url, reconnectTimeWait: 20, maxReconnectAttempts: -1 });
    connections.push(connection);
    const now = () => nowMs;
    return new NatsBuckets({ connection: connectionOf ?? (() => connection), local: new MemoryBuckets(now), now, longestRefillMs: 60_000 });
  };
  const take = (buckets: NatsBuckets, key: string, capacity: number) => buckets.increment(key, 60_000, capacity, 0, 'key');

  beforeEach(async () => {
    [first, second] = await Promise.all([open(), open()]);
  });
  afterEach(async () => {
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
  });

  it('law: replicas together grant a bucket no more than one of them alone would', async () => {
    const taken = await Promise.all(Array.from({ length: 60 }, (_, index) => take(index % 2 ? first : second, 'shared', 20)));
    expect(taken.filter(({ isBlocked }) => !isBlocked)).toHaveLength(20);
    expect((await take(first, 'shared', 20)).isBlocked).toBe(true);
    expect((await take(second, 'shared', 20)).isBlocked).toBe(true);
    expect((await take(second, 'another', 20)).isBlocked).toBe(false);
    const look = async (key: string) => (await first.peek(key, 60_000, 20)).isBlocked;
    expect([await look('shared'), await look('another'), await look('a third')]).toEqual([true, false, false]);
    expect((await first.peek('another', 60_000, 20)).totalHits).toBe(1);
  });

  it('takes keys of any form', async () => {
    const key = 'anonymous:2001:db8::/64 *.> é';
    expect((await take(first, key, 1)).isBlocked).toBe(false);
    expect((await take(second, key, 1)).isBlocked).toBe(true);
  });

  it('falls back to the buckets of the process where there is no connection', async () => {
    const cut = await open(() => undefined);
    const blocked = [];
    for (let index = 0; index < 4; index++) blocked.push((await take(cut, 'cut off', 3)).isBlocked);
    expect(blocked).toEqual([false, false, false, true]);
  });

  it('falls back while the server is frozen, without keeping anybody waiting for long', async () => {
    await take(first, 'frozen', 2);
    await server.pause();
    try {
      const records = await Promise.all([take(first, 'frozen', 2), take(first, 'frozen', 2), take(first, 'frozen', 2)]);
      expect(records.map(({ isBlocked }) => isBlocked)).toEqual([false, false, true]);
    } finally {
      server.resume();
    }
  });
});
