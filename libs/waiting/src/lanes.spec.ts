import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Lanes, type Refused } from './lanes.js';

const refused = new Error('refused');

/** Work that ends when it is told to. */
function work(log: string[], name: string): { run: () => Promise<string>; end: () => void; fail: () => void } {
  let settle: { resolve: (value: string) => void; reject: (error: Error) => void };
  const done = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
  return {
    run: () => {
      log.push(name);
      return done;
    },
    end: () => settle.resolve(name),
    fail: () => settle.reject(new Error(name)),
  };
}

describe('lanes', () => {
  it('law: run no more at once than they are wide, all of it in order, also where some of it fails', async () => {
    const works = fc.array(fc.record({ lane: fc.constantFrom('a', 'b'), fails: fc.boolean() }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), works, async (width, planned) => {
        const lanes = new Lanes({ width, maxWaiting: 100, patienceMs: 60_000 }, () => refused);
        const began = new Map<string, number[]>([
          ['a', []],
          ['b', []],
        ]);
        const running = new Map<string, number>();
        const all = planned.map(({ lane, fails }, at) =>
          lanes.run(lane, async () => {
            began.get(lane)?.push(at);
            running.set(lane, (running.get(lane) ?? 0) + 1);
            expect(running.get(lane)).toBeLessThanOrEqual(width);
            await Promise.resolve();
            running.set(lane, (running.get(lane) ?? 0) - 1);
            if (fails) throw new Error('this one fails');
          }),
        );
        const outcomes = await Promise.allSettled(all);
        expect(outcomes.map(({ status }) => status)).toEqual(
          planned.map(({ fails }) => (fails ? 'rejected' : 'fulfilled')),
        );
        for (const order of began.values()) expect(order).toEqual([...order].sort((one, other) => one - other));
      }),
    );
  });

  it('refuse what finds too much waiting, and take the next once there is room', async () => {
    const lanes = new Lanes({ width: 1, maxWaiting: 1, patienceMs: 60_000 }, () => refused);
    const log: string[] = [];
    const [first, second, third] = ['first', 'second', 'third'].map((name) => work(log, name));
    const [running, waiting] = [first, second].map((one) => lanes.run('a', one?.run ?? (() => Promise.resolve(''))));
    await expect(lanes.run('a', third?.run ?? (() => Promise.resolve('')))).rejects.toBe(refused);
    expect(log).toEqual(['first']);
    first?.fail();
    await expect(running).rejects.toThrow('first');
    expect(log).toEqual(['first', 'second']);
    const after = lanes.run('a', third?.run ?? (() => Promise.resolve('')));
    second?.end();
    third?.end();
    expect([await waiting, await after]).toEqual(['second', 'third']);
  });

  it('run what is urgent before what is not, in its order, once a place is free', async () => {
    const lanes = new Lanes({ width: 1, maxWaiting: 10, patienceMs: 60_000 }, () => refused);
    const log: string[] = [];
    const names = ['running', 'plain', 'urgent', 'plain too', 'urgent too'];
    const works = names.map((name) => work(log, name));
    const all = works.map(({ run }, at) => lanes.run('a', run, { isUrgent: names[at]?.startsWith('urgent') ?? false }));
    for (const { end } of works) end();
    await Promise.all(all);
    expect(log).toEqual(['running', 'urgent', 'urgent too', 'plain', 'plain too']);
  });

  it('refuse what waited too long, and hand its place to the next', async () => {
    jest.useFakeTimers();
    try {
      const lanes = new Lanes({ width: 1, maxWaiting: 10, patienceMs: 1_000 }, () => refused);
      const log: string[] = [];
      const [first, second, third] = [work(log, 'first'), work(log, 'second'), work(log, 'third')];
      const running = lanes.run('a', first.run);
      const tooLate = expect(lanes.run('a', second.run)).rejects.toBe(refused);
      jest.advanceTimersByTime(999);
      const next = lanes.run('a', third.run);
      jest.advanceTimersByTime(1);
      await tooLate;
      first.end();
      third.end();
      expect([await running, await next]).toEqual(['first', 'third']);
      expect(log).toEqual(['first', 'third']);
    } finally {
      jest.useRealTimers();
    }
  });

  it('refuse what waited for as long as it may itself, and tell whether the lane stands still or moves on', async () => {
    jest.useFakeTimers();
    try {
      const told: Refused[] = [];
      const lanes = new Lanes({ width: 2, maxWaiting: 10, patienceMs: 60_000 }, (why) => {
        told.push(why);
        return refused;
      });
      const log: string[] = [];
      const [first, second, third] = [work(log, 'first'), work(log, 'second'), work(log, 'third')];
      const running = [first, second].map(({ run }) => lanes.run('a', run));
      const hasty = expect(lanes.run('a', third.run, { patienceMs: 1_000 })).rejects.toBe(refused);
      jest.advanceTimersByTime(1_000);
      await hasty;
      const next = lanes.run('a', third.run);
      const late = expect(lanes.run('a', third.run, { patienceMs: 1_000 })).rejects.toBe(refused);
      first.end();
      await running[0];
      jest.advanceTimersByTime(1_000);
      await late;
      expect(told).toEqual([{ stalled: true }, { stalled: false }]);
      second.end();
      third.end();
      expect([await running[1], await next]).toEqual(['second', 'third']);
    } finally {
      jest.useRealTimers();
    }
  });
});
