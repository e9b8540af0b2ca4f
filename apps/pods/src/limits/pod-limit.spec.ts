import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { podLimits, type Pod, type PodLimits } from '@atoll/contracts/pods';
import { teamChanged } from '@atoll/contracts/teams';
import { handleOnce, newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { memberOf, runs } from '@atoll/testing';
import { assert, constant, integer, oneof, property, record } from 'fast-check';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { boundedTerms, noLimits, termsFor, together } from './bounds.js';
import { PodSteps } from '../pods/pod-steps.js';
import { IdleWatch } from '../watch/idle-watch.js';
import { PodDeadlines } from './pod-deadlines.js';

let fixture: PodsFixture;
let team: ToldTeam;
let owner: ToldTeam['member'];
let nowMs = Date.now();
beforeAll(async () => {
  fixture = await PodsFixture.start({ now: () => nowMs });
});
beforeEach(async () => {
  nowMs = Date.now();
  team = await fixture.team('member', 100);
  owner = memberOf(team.team_id, 'team_admin');
  await fixture.call(podLimits.set, noLimits);
});
afterAll(() => fixture.stop());

const minuteMs = 60_000;
const setOfTeam = (limits: Partial<PodLimits>, caller = owner) =>
  fixture.call(podLimits.setOfTeam, { team_id: team.team_id, ...noLimits, ...limits }, caller);
const setOfAll = (limits: Partial<PodLimits>) => fixture.call(podLimits.set, { ...noLimits, ...limits });
const platformLines = async ({ pod_id }: Pod) =>
  (
    await fixture.query<{ message: string }>('SELECT message FROM platform_line WHERE pod_id = $1 ORDER BY id', [
      pod_id,
    ])
  ).map(({ message }) => message);
/** A worker looks at the pod now. */
const review = async ({ pod_id }: Pod) => {
  await fixture.query('UPDATE pod SET due_at = clock_timestamp(), parked_until = NULL WHERE pod_id = $1', [pod_id]);
  await fixture.work();
};

describe('the limits of pods', () => {
  const optional = (max: number) => oneof(constant(null), integer({ min: 1, max }));
  const idle = oneof(
    constant(null),
    record({ minutes: integer({ min: 1, max: 50 }), gpu_below_percent: integer({ min: 1, max: 100 }) }),
  );
  const any = record({
    default_duration_minutes: optional(50),
    longest_duration_minutes: optional(50),
    default_idle_stop: idle,
    longest_idle_minutes: optional(50),
  });

  it('law: no pod gets more than either bound, whatever the defaults; and what is within the bounds is given as it was requested', () => {
    assert(
      property(any, any, optional(60), idle, (operator, own, duration, idleStop) => {
        const limits = together(operator, own);
        const [longest, idleBound] = [
          limits.longest_duration_minutes ?? Infinity,
          limits.longest_idle_minutes ?? Infinity,
        ];
        for (const { longest_duration_minutes: bound } of [operator, own])
          expect(longest).toBeLessThanOrEqual(bound ?? Infinity);
        const asked = {
          ...(duration !== null && { max_duration_minutes: duration }),
          ...(idleStop !== null && { idle_stop: idleStop }),
        };
        const isWithin = (duration ?? 0) <= longest && (idleStop?.minutes ?? 0) <= idleBound;
        const bounded = boundedTerms({ maxDurationMinutes: duration, idleStop }, limits);
        for (const terms of isWithin ? [bounded, termsFor(asked, limits)] : [bounded]) {
          expect(terms.maxDurationMinutes ?? Infinity).toBeLessThanOrEqual(longest);
          expect(terms.idleStop?.minutes ?? Infinity).toBeLessThanOrEqual(idleBound);
          if (isWithin && duration !== null) expect(terms.maxDurationMinutes).toBe(duration);
          if (isWithin && idleStop !== null) expect(terms.idleStop).toEqual(idleStop);
        }
        if (!isWithin) expect(() => termsFor(asked, limits)).toThrow(AppError);
      }),
      runs(500),
    );
  });

  it('are set by the operator for all, by a team for itself, and shown together', async () => {
    await setOfAll({ default_duration_minutes: 600, longest_duration_minutes: 1_000, longest_idle_minutes: 90 });
    const idleStop = { minutes: 30, gpu_below_percent: 10 };
    const shown = await setOfTeam({ longest_duration_minutes: 480, default_idle_stop: idleStop });
    expect(shown).toEqual({
      ...noLimits,
      team_id: team.team_id,
      longest_duration_minutes: 480,
      default_idle_stop: idleStop,
      effective: {
        default_duration_minutes: 480,
        longest_duration_minutes: 480,
        default_idle_stop: idleStop,
        longest_idle_minutes: 90,
      },
    });
    expect(await fixture.call(podLimits.ofTeam, { team_id: team.team_id }, owner)).toEqual(shown);
    expect(await fixture.create(team)).toMatchObject({ max_duration_minutes: 480, idle_stop: idleStop });
    expect(await fixture.create(team, { max_duration_minutes: 60 })).toMatchObject({ max_duration_minutes: 60 });
    const refused = await errorOf(
      fixture.create(team, { max_duration_minutes: 481, idle_stop: { minutes: 91, gpu_below_percent: 5 } }),
    );
    expect([refused.code, refused.details.errors?.map(({ message }) => message)]).toEqual([
      'invalid_input',
      [
        'max_duration_minutes must be at most 480, the upper bound',
        'idle_stop.minutes must be at most 90, the upper bound',
      ],
    ]);
  });

  it('hold for a pod that is started again', async () => {
    const pod = await fixture.running(team, { max_duration_minutes: 600 });
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    await setOfTeam({ longest_duration_minutes: 60, longest_idle_minutes: 15 });
    await fixture.act(pod, 'start', team);
    expect(await fixture.until(pod, 'running')).toMatchObject({
      max_duration_minutes: 60,
      idle_stop: { minutes: 15, gpu_below_percent: 5 },
    });
  });

  it('are consistent, and a team’s are not above the operator’s', async () => {
    await setOfAll({ longest_duration_minutes: 100, longest_idle_minutes: 50 });
    const pathsOf = async (setting: Promise<unknown>) =>
      (await errorOf(setting)).details.errors?.map(({ path }) => path);
    expect(await pathsOf(setOfTeam({ longest_duration_minutes: 101, longest_idle_minutes: 51 }))).toEqual([
      'longest_duration_minutes',
      'longest_idle_minutes',
    ]);
    const idleStop = { minutes: 20, gpu_below_percent: 5 };
    expect(await pathsOf(setOfAll({ default_idle_stop: idleStop, longest_idle_minutes: 10 }))).toEqual([
      'default_idle_stop.minutes',
    ]);
    expect(await pathsOf(setOfAll({ default_duration_minutes: 20, longest_duration_minutes: 10 }))).toEqual([
      'default_duration_minutes',
    ]);
    expect(await pathsOf(setOfAll({ default_duration_minutes: 0 }))).toEqual(['default_duration_minutes']);
    expect(await pathsOf(fixture.call(podLimits.set, {} as PodLimits))).toContain('longest_idle_minutes');
  });

  it('that are inconsistent in themselves are refused for that, whoever sets them, and for whichever team', async () => {
    const wrong = { ...noLimits, default_duration_minutes: 20, longest_duration_minutes: 10 };
    const settings = [
      () => setOfTeam(wrong, team.member),
      () => setOfTeam(wrong, memberOf(newId(), 'team_owner')),
      () => fixture.call(podLimits.setOfTeam, { team_id: newId(), ...wrong }),
      () => fixture.call(podLimits.set, wrong, owner),
    ];
    for (const set of settings) expect((await errorOf(set())).code).toBe('invalid_input');
    await setOfAll({ longest_duration_minutes: 100 });
    const tooLong = setOfTeam({ longest_duration_minutes: 101 }, team.member);
    expect((await errorOf(tooLong)).code).toBe('forbidden');
  });

  it('are not changed by a team that is suspended', async () => {
    const suspended = await fixture.team('team_owner');
    const change = {
      team_id: suspended.team_id,
      name: 'x',
      status: 'active' as const,
      is_suspended: true,
      revision: 2,
    };
    await fixture.tell(teamChanged, { ...change, workspaces: [{ id: suspended.workspace_id, name: 'default' }] });
    const set = (caller?: object) =>
      fixture.call(podLimits.setOfTeam, { team_id: suspended.team_id, ...noLimits }, caller);
    expect((await errorOf(set(suspended.member))).code).toBe('team_suspended');
    await set();
  });

  it('are not changed by a call that comes to it after its deadline, as in a replica that was frozen', async () => {
    const { effective } = await setOfTeam({ longest_duration_minutes: 60 });
    const late = () => handleOnce({ nonce: 'late', deadlineAtMs: Date.now() }, () => setOfTeam(noLimits));
    expect((await errorOf(late())).code).toBe('deadline_exceeded');
    expect((await fixture.call(podLimits.ofTeam, { team_id: team.team_id }, owner)).effective).toEqual(effective);
  });

  it('are for the operator, and for those who manage the team; another team’s are not found', async () => {
    const stranger = await fixture.team('team_owner');
    expect((await errorOf(setOfTeam({}, team.member))).code).toBe('forbidden');
    expect((await errorOf(setOfTeam({}, stranger.member))).code).toBe('not_found');
    expect((await errorOf(fixture.call(podLimits.ofTeam, { team_id: team.team_id }, stranger.member))).code).toBe(
      'not_found',
    );
    expect((await errorOf(fixture.call(podLimits.ofTeam, { team_id: team.team_id }, team.member))).code).toBe(
      'forbidden',
    );
    for (const caller of [owner, team.member]) {
      expect((await errorOf(fixture.call(podLimits.get, {}, caller))).code).toBe('forbidden');
      expect((await errorOf(fixture.call(podLimits.set, noLimits, caller))).code).toBe('forbidden');
    }
  });
});

describe('a pod with a longest duration', () => {
  it('says ten minutes before in its log that it is stopped, once, and is stopped and shows why', async () => {
    // The clock stands still: the pod must not begin behind it.
    nowMs += minuteMs;
    const pod = await fixture.running(team, { max_duration_minutes: 60 });
    const stopsAtMs = Date.parse(pod.stops_at ?? '');
    expect(stopsAtMs - Date.parse(pod.started_at ?? '')).toBe(60 * minuteMs);
    nowMs = stopsAtMs - 10 * minuteMs - 1;
    await review(pod);
    expect(await platformLines(pod)).toEqual([]);
    for (nowMs = stopsAtMs - 10 * minuteMs; nowMs < stopsAtMs; nowMs += 5 * minuteMs - 1) await review(pod);
    const line = `The pod will be stopped at ${pod.stops_at}, at the end of its maximum duration of 60 minutes.`;
    expect([await platformLines(pod), (await fixture.pod(pod)).status]).toEqual([[line], 'running']);
    nowMs = stopsAtMs;
    await review(pod);
    expect(await fixture.until(pod, 'stopped')).toMatchObject({
      reason: 'It was stopped after 60 minutes, its maximum duration.',
    });
    await fixture.act(pod, 'start', team);
    const again = await fixture.until(pod, 'running');
    expect(again.stops_at).not.toBe(pod.stops_at);
    nowMs = Date.parse(again.stops_at ?? '') - minuteMs;
    await review(again);
    expect((await platformLines(pod)).length).toBe(2);
  });

  it('is warned in each start of its own, also where a look at an earlier start ends late', async () => {
    const pod = await fixture.running(team, { max_duration_minutes: 60 });
    const [raw] = await fixture.query('SELECT * FROM pod WHERE pod_id = $1', [pod.pod_id]);
    const row = fixture.get(PodSteps).rowOf(raw!);
    nowMs = Date.parse(pod.stops_at ?? '') - minuteMs;
    await fixture.get(PodDeadlines).nextLookMs(Object.assign(row, { start: row.start - 1 }));
    expect(await platformLines(pod)).toEqual([]);
    await review(pod);
    expect((await platformLines(pod)).length).toBe(1);
  });

  it('is stopped also while it waits for its next run', async () => {
    const pod = await fixture.running(team, { name: 'crash', max_duration_minutes: 1 });
    await fixture.untilIs(pod, ({ restarts }) => {
      // Its back-off passes.
      nowMs = Date.now();
      return restarts > 0;
    });
    await fixture.query(
      `UPDATE pod SET state = 'restarting', next_run_at = clock_timestamp() + interval '1 hour', deadline_at = clock_timestamp() + interval '1 hour'
       WHERE pod_id = $1`,
      [pod.pod_id],
    );
    nowMs = Date.now() + 2 * minuteMs;
    expect(await fixture.until(pod, 'stopped')).toMatchObject({
      reason: 'It was stopped after 1 minute, its maximum duration.',
    });
    expect((await platformLines(pod)).join()).toMatch(/, at the end of its maximum duration of 1 minute\.$/);
  });

  it('is looked at for its warning and its end also where its next run begins later', async () => {
    const pod = await fixture.running(team, { max_duration_minutes: 60 });
    const stopsAtMs = Date.parse(pod.stops_at ?? '');
    const driver = await fixture.simulated.driverOf('1');
    await driver.remove({ kind: 'pod', id: pod.pod_id, run: 1 }, AbortSignal.timeout(10_000));
    await fixture.untilIs(pod, ({ status }) => status === 'pending');
    await fixture.query('UPDATE pod SET next_run_at = $2 WHERE pod_id = $1', [
      pod.pod_id,
      new Date(stopsAtMs + 60 * minuteMs),
    ]);
    const isLookedAtWithin = async (minutes: number) => {
      const query = `SELECT FROM pod WHERE pod_id = $1 AND parked_until <= clock_timestamp() + $2 * interval '1 minute'`;
      return (await fixture.query(query, [pod.pod_id, minutes])).length > 0;
    };
    nowMs = stopsAtMs - 30 * minuteMs;
    await review(pod);
    expect([await isLookedAtWithin(20), await platformLines(pod)]).toEqual([true, []]);
    nowMs = stopsAtMs - 10 * minuteMs;
    await review(pod);
    expect([await isLookedAtWithin(10), (await platformLines(pod)).length]).toEqual([true, 1]);
    nowMs = stopsAtMs;
    await review(pod);
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ restarts: 0 });
  });
});

describe('a pod that is stopped when it idles', () => {
  const idle_stop = { minutes: 30, gpu_below_percent: 10 };
  const use = (kind: 'measured' | 'shared' | 'no_data', peak_percent: number | null) => {
    fixture.neighbours.usage = () => ({ kind, peak_percent });
  };
  const looks = async (minutes: number) => {
    for (const endMs = nowMs + minutes * minuteMs; nowMs < endMs;) {
      nowMs += minuteMs;
      await fixture.get(IdleWatch).look();
    }
  };

  it('is stopped after its minutes without use, and said so ten minutes before', async () => {
    const pod = await fixture.running(team, { idle_stop });
    use('measured', 9);
    // The first look begins the count.
    await looks(20);
    expect(await platformLines(pod)).toEqual([]);
    await looks(1);
    const line =
      'The pod will be stopped in 10 min unless it uses its GPU: 30 minutes with less than 10 % use of its GPU are allowed.';
    await looks(9);
    expect([await platformLines(pod), (await fixture.pod(pod)).status]).toEqual([[line], 'running']);
    await looks(1);
    expect(await fixture.until(pod, 'stopped')).toMatchObject({
      reason: 'It was stopped after 30 minutes with less than 10 % use of its GPU.',
    });
    expect(fixture.neighbours.workload(pod.pod_id)?.status).toBe('stopped');
    await fixture.act(pod, 'start', team);
    await fixture.until(pod, 'running');
    await looks(29);
    expect((await fixture.pod(pod)).status).toBe('running');
  });

  it('is stopped after one minute where its rule says so, and is told that in the singular', async () => {
    const pod = await fixture.running(team, { idle_stop: { minutes: 1, gpu_below_percent: 10 } });
    use('measured', 9);
    await looks(2);
    const idle = '1 minute with less than 10 % use of its GPU';
    expect(await platformLines(pod)).toEqual([
      `The pod will be stopped in 1 min unless it uses its GPU: ${idle} is allowed.`,
    ]);
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ reason: `It was stopped after ${idle}.` });
  });

  it('is, where its cluster is simulated, told to the figures as one that uses nothing if its name or image says idle', async () => {
    const named = await fixture.running(team, { name: 'idle', idle_stop });
    const imaged = await fixture.running(team, { image: 'registry.example.com/idle:1', idle_stop });
    const elsewhere = await fixture.running(team, { name: 'idle', idle_stop });
    await fixture.running(team, { name: 'idler', idle_stop });
    // Of a cluster that is not known as simulated.
    const move = (gpuaasId: number) =>
      fixture.query('UPDATE pod SET gpuaas_id = $2 WHERE pod_id = $1', [elsewhere.pod_id, gpuaasId]);
    await move(99);
    const idle: string[] = [];
    fixture.neighbours.usage = ({ pod_id, is_idle }) => {
      if (is_idle) idle.push(pod_id);
      return { kind: 'measured', peak_percent: is_idle ? 0 : 50 };
    };
    await looks(31);
    await move(1);
    expect(new Set(idle)).toEqual(new Set([named.pod_id, imaged.pod_id]));
    expect((await fixture.until(named, 'stopped')).reason).toContain('30 minutes with less than 10 % use');
    expect((await fixture.pod(elsewhere)).status).toBe('running');
  });

  it('goes on after each use, where there is no figure, and while gpuaas does not answer', async () => {
    const pod = await fixture.running(team, { idle_stop });
    for (const interrupt of [() => use('measured', 10), () => use('no_data', null)]) {
      use('measured', 0);
      await looks(29);
      interrupt();
      await looks(1);
    }
    use('measured', 0);
    await looks(29);
    fixture.neighbours.failing = new AppError('unavailable', 'Nobody answers.');
    await looks(60);
    fixture.neighbours.failing = undefined;
    await looks(29);
    expect((await fixture.pod(pod)).status).toBe('running');
  });

  it('goes on where the figures are those of an earlier start', async () => {
    const pod = await fixture.running(team, { idle_stop });
    fixture.neighbours.usage = ({ start }) =>
      Object.assign({ kind: 'measured' as const, peak_percent: 0 }, { start: start - 1 });
    await looks(40);
    expect([(await fixture.pod(pod)).status, await platformLines(pod)]).toEqual(['running', []]);
  });

  it('goes on while there are no figures, and its log says so once after five minutes, and again if they come and go', async () => {
    const pod = await fixture.running(team, { idle_stop });
    const line = 'idle_stop has no effect for now: there is no figure of how much the pod uses its GPU.';
    use('no_data', null);
    await looks(5);
    expect(await platformLines(pod)).toEqual([]);
    await looks(60);
    expect(await platformLines(pod)).toEqual([line]);
    use('measured', 50);
    await looks(1);
    use('no_data', null);
    await looks(6);
    expect([await platformLines(pod), (await fixture.pod(pod)).status]).toEqual([[line, line], 'running']);
  });

  it('goes on where it shares its GPU, and its log says why, once', async () => {
    const pod = await fixture.running(team, { idle_stop });
    use('shared', null);
    await looks(60);
    expect((await fixture.pod(pod)).status).toBe('running');
    expect(await platformLines(pod)).toEqual([
      'idle_stop has no effect: the pod shares its GPU with others, and what each of them uses cannot be told apart.',
    ]);
  });
});
