import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { contextOf, errorOf, runs } from '@atoll/testing';
import { array, assert, asyncProperty, integer, nat, record } from 'fast-check';
import type { CallContext, UserCaller } from '@atoll/contracts';
import { isAppError, type AppError } from '@atoll/errors';
import { systemContext } from '@atoll/rpc';
import { BillingSettings } from '../billing-settings.js';
import { Turns } from '@atoll/waiting';
import { ReportQueue } from './report-queue.js';

const queueOf = (reportsAtOnce: number, reportsPerTeam: number) =>
  new ReportQueue(Object.assign(new BillingSettings(), { reportsAtOnce, reportsPerTeam }), new Turns());
const within = (deadlineMs: number): CallContext => systemContext('spec', { deadlineMs });
/** Lets everything that is due happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A report that runs until it is ended. */
class Report {
  isRunning = false;
  outcome: 'done' | AppError | undefined;
  readonly ended: Promise<void>;
  end = (): void => undefined;

  constructor(
    queue: ReportQueue,
    readonly team: string,
    context = within(60_000),
    onStart: (report: Report) => void = () => undefined,
  ) {
    const running = new Promise<void>((resolve) => (this.end = resolve));
    const work = async () => {
      this.isRunning = true;
      onStart(this);
      await running;
      this.isRunning = false;
    };
    this.ended = queue.run(team, context, work).then(
      () => void (this.outcome = 'done'),
      (error: unknown) => {
        if (!isAppError(error)) throw error;
        this.outcome = error;
      },
    );
  }
}

describe('reports', () => {
  it('law: keep their bounds, leave no place empty, and are all made, of the team with the fewest first', async () => {
    const steps = array(record({ team: nat(4), ends: integer({ min: -1, max: 5 }) }), { minLength: 1, maxLength: 40 });
    await assert(
      asyncProperty(steps, integer({ min: 1, max: 4 }), integer({ min: 1, max: 3 }), async (drawn, atOnce, perTeam) => {
        const queue = queueOf(atOnce, perTeam);
        const all: Report[] = [];
        const started: string[] = [];
        const of = (team: string) => all.filter((report) => report.team === team);
        const running = () => all.filter(({ isRunning }) => isRunning);
        const expectFull = () => {
          const teams = [...new Set(all.map(({ team }) => team))];
          expect(running().length).toBeLessThanOrEqual(atOnce);
          for (const team of teams)
            expect(of(team).filter(({ isRunning }) => isRunning).length).toBeLessThanOrEqual(perTeam);
          if (running().length === atOnce) return;
          for (const team of teams) {
            const waits = of(team).some(({ isRunning, outcome }) => !isRunning && outcome === undefined);
            if (waits) expect(of(team).filter(({ isRunning }) => isRunning)).toHaveLength(perTeam);
          }
        };
        for (const { team, ends } of drawn) {
          all.push(new Report(queue, `team ${team}`, undefined, (report) => started.push(report.team)));
          running()[ends]?.end();
          await settle();
          expectFull();
        }
        while (running().length > 0) {
          const waiting = new Set(
            all.filter(({ isRunning, outcome }) => !isRunning && outcome === undefined).map(({ team }) => team),
          );
          running()[0]?.end();
          const runningOf = new Map([...waiting].map((team) => [team, of(team).filter((one) => one.isRunning).length]));
          const before = started.length;
          await settle();
          expectFull();
          // The one that ended counts no more.
          const fewest = Math.min(...runningOf.values());
          for (const team of started.slice(before)) expect((runningOf.get(team) ?? 0) - fewest).toBeLessThanOrEqual(1);
        }
        expect(all.every(({ outcome }) => outcome === 'done')).toBe(true);
        expect(all.map(({ team }) => team).sort()).toEqual(started.sort());
      }),
      runs(200),
    );
  });

  it('of a team with many let another team’s next be the next', async () => {
    const queue = queueOf(2, 2);
    const many = Array.from({ length: 50 }, () => new Report(queue, 'many'));
    await settle();
    const other = new Report(queue, 'other');
    await settle();
    expect([many.filter(({ isRunning }) => isRunning).length, other.isRunning]).toEqual([2, false]);
    many[0]?.end();
    await settle();
    expect(other.isRunning).toBe(true);
    while (many.some(({ outcome }) => outcome === undefined)) {
      for (const report of [...many, other]) if (report.isRunning) report.end();
      await settle();
    }
  });

  it.each([
    ['one user in many teams', (user: string) => ({ userId: user })],
    ['one holder of keys of invited people', (user: string) => ({ heldBy: user })],
  ])('of %s are made as those of one team, and another user’s beside them', async (_who, caller) => {
    const queue = queueOf(3, 2);
    const by = (user: string): CallContext => ({ ...contextOf(caller(user)), deadlineAtMs: Date.now() + 60_000 });
    const many = Array.from({ length: 20 }, (_, at) => new Report(queue, `team ${at}`, by('one')));
    await settle();
    expect(many.filter(({ isRunning }) => isRunning)).toHaveLength(2);
    const other = new Report(queue, 'team 0', by('another'));
    await settle();
    expect(other.isRunning).toBe(true);
    while ([...many, other].some(({ outcome }) => outcome === undefined)) {
      for (const report of [...many, other]) if (report.isRunning) report.end();
      await settle();
    }
  });

  it('of one user and of one team keep the bounds of both, and those of the operator that of their teams', async () => {
    const queue = queueOf(7, 2);
    const by = (caller: Partial<UserCaller>): CallContext => ({
      ...contextOf(caller),
      deadlineAtMs: Date.now() + 60_000,
    });
    const ofTeam = ['a', 'b', 'c'].map((userId) => new Report(queue, 'ours', by({ userId })));
    const ofOperator = ['d', 'e', 'f'].map((team) => new Report(queue, team, by({ userId: 'o', platformAdmin: true })));
    await settle();
    expect([ofTeam, ofOperator].map((all) => all.map(({ isRunning }) => isRunning))).toEqual([
      [true, true, false],
      [true, true, true],
    ]);
    for (const report of [...ofTeam, ...ofOperator, ...ofTeam]) {
      report.end();
      await settle();
    }
    expect([...ofTeam, ...ofOperator].map(({ outcome }) => outcome)).toEqual(Array(6).fill('done'));
  });

  it('of teams that all ask for many are made in turn', async () => {
    const queue = queueOf(1, 1);
    const started: string[] = [];
    const before = new Report(queue, 'before');
    const ofTeam = (team: string) => [1, 2, 3].map(() => new Report(queue, team, undefined, () => started.push(team)));
    const all = [before, ...['a', 'b', 'c'].flatMap(ofTeam)];
    for (let n = 0; n < all.length; n += 1) {
      await settle();
      all.find(({ isRunning }) => isRunning)?.end();
    }
    await Promise.all(all.map(({ ended }) => ended));
    expect(started.join('')).toBe('abcabcabc');
  });

  it('that fail give their place back', async () => {
    const queue = queueOf(1, 1);
    await expect(queue.run('a', within(1_000), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await queue.run('a', within(1_000), () => Promise.resolve('made'))).toBe('made');
  });
});

describe('a report that waits', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('for its own team is refused with 429 when half of its deadline has passed, and for others with 503', async () => {
    const queue = queueOf(2, 1);
    const running = [new Report(queue, 'a'), new Report(queue, 'b')];
    const [own, common] = [new Report(queue, 'a', within(5_000)), new Report(queue, 'c', within(5_000))];
    await jest.advanceTimersByTimeAsync(2_499);
    expect([own.outcome, common.outcome]).toEqual([undefined, undefined]);
    await jest.advanceTimersByTimeAsync(1);
    await Promise.all([own.ended, common.ended]);
    const details = { retryAfterSeconds: 3 };
    expect(own.outcome).toMatchObject({
      code: 'too_many_requests',
      message: 'Too many requests. Please try again later.',
      details,
    });
    expect(common.outcome).toMatchObject({ code: 'unavailable', details });
    running.forEach(({ end }) => end());
    await Promise.all(running.map(({ ended }) => ended));
    // Nobody is left, and nobody was counted twice.
    const next = [new Report(queue, 'a'), new Report(queue, 'c')];
    await settle();
    expect(next.map(({ isRunning }) => isRunning)).toEqual([true, true]);
  });

  it('for its team takes no place of its user: those of the user’s other teams are made meanwhile', async () => {
    const queue = queueOf(4, 2);
    const one = () => ({ ...contextOf({ userId: 'one' }), deadlineAtMs: Date.now() + 60_000 });
    const busy = ['ours', 'ours'].map((team) => new Report(queue, team));
    const waiting = ['ours', 'ours'].map((team) => new Report(queue, team, one()));
    const other = new Report(queue, 'mine', one());
    await settle();
    expect([...waiting, other].map(({ isRunning }) => isRunning)).toEqual([false, false, true]);
    for (const report of [...busy, other, ...waiting]) {
      report.end();
      await settle();
    }
    expect([...busy, ...waiting, other].map(({ outcome }) => outcome)).toEqual(Array(5).fill('done'));
  });

  it('for places that others have is told so, also where the user has asked for more than may be made at once', async () => {
    const queue = queueOf(2, 1);
    const one = () => ({ ...contextOf({ userId: 'one' }), deadlineAtMs: Date.now() + 5_000 });
    const others = ['c', 'd'].map((team) => new Report(queue, team));
    const waiting = ['a', 'b'].map((team) => new Report(queue, team, one()));
    await jest.advanceTimersByTimeAsync(2_500);
    expect(waiting.map(({ outcome }) => outcome)).toMatchObject([{ code: 'unavailable' }, { code: 'unavailable' }]);
    others.forEach(({ end }) => end());
    await Promise.all(others.map(({ ended }) => ended));
  });

  it('and is started in time is not refused any more', async () => {
    const queue = queueOf(1, 1);
    const first = new Report(queue, 'a');
    const second = new Report(queue, 'b', within(5_000));
    await jest.advanceTimersByTimeAsync(2_000);
    first.end();
    await settle();
    await jest.advanceTimersByTimeAsync(2_000);
    expect([second.isRunning, second.outcome]).toEqual([true, undefined]);
  });

  it('ends between two slices once its deadline has passed', async () => {
    const queue = queueOf(1, 1);
    const late = queue.run('a', within(1_000), async (pace) => {
      for (;;) {
        jest.setSystemTime(Date.now() + 300);
        await pace.turn();
      }
    });
    expect((await errorOf(late)).code).toBe('deadline_exceeded');
  });
});
