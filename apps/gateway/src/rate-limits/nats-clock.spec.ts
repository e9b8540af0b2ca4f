import { describe, expect, it } from '@jest/globals';
import type { KV } from '@nats-io/kv';
import fc from 'fast-check';
import { NatsClock } from './nats-clock.js';

/** A NATS whose clock and distance are set by the spec, and the clock of a process that is so far off. */
class Distant {
  trueMs = 1_700_000_000_000;
  offMs = 0;
  /** How long each put is under way there, and its answer back. */
  ways: [thereMs: number, backMs: number][] = [];
  puts = 0;
  isAway = false;
  #createdMs = 0;

  readonly own = () => this.trueMs + this.offMs;
  readonly kv = {
    put: () => {
      if (this.isAway) return Promise.reject(new Error('away'));
      const [thereMs, backMs] = this.ways[this.puts % this.ways.length] ?? [0, 0];
      this.puts += 1;
      this.#createdMs = this.trueMs + thereMs;
      this.trueMs += thereMs + backMs;
      return Promise.resolve(this.puts);
    },
    get: () => Promise.resolve({ created: new Date(this.#createdMs) }),
  } as unknown as KV;
}

describe('the time of NATS', () => {
  it('law: is off by half of the fastest put at most, however far the own clock is off and however slow others are', async () => {
    const way = fc.tuple(fc.nat({ max: 300 }), fc.nat({ max: 300 }));
    const off = fc.integer({ min: -86_400_000, max: 86_400_000 });
    await fc.assert(
      fc.asyncProperty(fc.array(way, { minLength: 3, maxLength: 3 }), off, async (ways, offMs) => {
        const distant = Object.assign(new Distant(), { ways, offMs });
        const fastestMs = Math.min(...ways.map(([thereMs, backMs]) => thereMs + backMs));
        const nowMs = await new NatsClock(distant.own).now(distant.kv);
        expect(Math.abs(nowMs - distant.trueMs)).toBeLessThanOrEqual(fastestMs / 2);
      }),
    );
  });

  it('goes on with the own clock for 30 s, and is then measured again', async () => {
    const distant = Object.assign(new Distant(), { offMs: 5_000 });
    const clock = new NatsClock(distant.own);
    await clock.now(distant.kv);
    const { puts } = distant;
    distant.trueMs += 30_000;
    expect([await clock.now(distant.kv), distant.puts]).toEqual([distant.trueMs, puts]);
    // The own clock has drifted meanwhile.
    distant.offMs += 10;
    expect([await clock.now(distant.kv), distant.puts]).toEqual([distant.trueMs, 2 * puts]);
  });

  it('is measured again at once in a store that was opened anew, which may be at another server', async () => {
    const [one, other] = [new Distant(), Object.assign(new Distant(), { trueMs: 1_800_000_000_000 })];
    const clock = new NatsClock(one.own);
    expect([await clock.now(one.kv), await clock.now(other.kv)]).toEqual([one.trueMs, other.trueMs]);
  });

  it('is measured once for all who ask at once', async () => {
    const distant = new Distant();
    const clock = new NatsClock(distant.own);
    await clock.now(distant.kv);
    const { puts } = distant;
    const another = new NatsClock(distant.own);
    expect(await Promise.all([1, 2, 3].map(() => another.now(distant.kv)))).toEqual(Array(3).fill(distant.trueMs));
    expect(distant.puts).toBe(2 * puts);
  });

  it('is unknown while NATS is away, and measured once it is back', async () => {
    const distant = Object.assign(new Distant(), { isAway: true, offMs: -5_000 });
    const clock = new NatsClock(distant.own);
    await expect(clock.now(distant.kv)).rejects.toThrow('away');
    distant.isAway = false;
    expect(await clock.now(distant.kv)).toBe(distant.trueMs);
  });
});
