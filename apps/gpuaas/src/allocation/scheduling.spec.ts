import { describe, expect, it } from '@jest/globals';
import { boardNamed, mpsProfile, type SliceProfile } from '@atoll/gpu';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import type { GpuState } from '../model/gpu.machine.js';
import {
  maxWaiting,
  mostOfTeam,
  schedule,
  scheduleInTurn,
  type Decision,
  type PoolState,
  type Wanted,
} from './scheduling.js';
import type { GpuRoom, PlacingRules } from '../sharing/plan.js';

const board = boardNamed('A100-80GB')!;
const lowest = (count: number) => (1n << BigInt(count)) - 1n;
const bits = (mask: bigint) => [...mask.toString(2)].filter((bit) => bit === '1').length;

/**
 * Two MPS shares of each GPU, four turns where it may fall back: a pool whose capacity is a number, whatever is where.
 */
const replicas = 2;
const turns = 4;
const half = mpsProfile(board, replicas);
const mpsRules = (allowFallback: boolean): PlacingRules => ({
  isTemporal: false,
  turns: allowFallback ? turns : 0,
  allowFallback,
  canSwitchUnderTenants: true,
  sold: [half],
});

/** How many tenants a GPU has, by its state: at rest and on the way, each has one place. */
const tenantsOf = ({ state, slotsUsed, turnsUsed }: GpuRoom) =>
  ['temporal', 'to_temporal', 'doubting_temporal'].includes(state)
    ? bits(turnsUsed)
    : Math.max(bits(slotsUsed), bits(turnsUsed));
const isLost = ({ state }: GpuRoom) => state === 'offline';
const capacityOf = (gpus: readonly GpuRoom[], { allowFallback }: PlacingRules) =>
  gpus.reduce((sum, gpu) => sum + (isLost(gpu) ? 0 : (allowFallback ? turns : replicas) - tenantsOf(gpu)), 0);

function aGpu(gpuId: string, allowFallback: boolean): fc.Arbitrary<GpuRoom> {
  const spatial = fc.record({
    state: fc.constantFrom<GpuState>('spatial', 'preparing', 'offline'),
    tenants: fc.nat({ max: replicas }),
  });
  const returning = fc.record({
    state: fc.constantFrom<GpuState>('to_spatial', 'doubting_spatial'),
    tenants: fc.nat({ max: replicas }),
  });
  const fallen = fc.record({
    state: fc.constantFrom<GpuState>('temporal', 'to_temporal', 'doubting_temporal', 'preparing'),
    tenants: fc.integer({ min: 1, max: turns }),
  });
  return fc.oneof(spatial, ...(allowFallback ? [returning, fallen] : [])).map(({ state, tenants }) => {
    const isFallen = ['temporal', 'to_temporal', 'doubting_temporal'].includes(state) || tenants > replicas;
    const isReturning = ['to_spatial', 'doubting_spatial'].includes(state);
    return {
      gpuId,
      state: isFallen && ['spatial', 'offline'].includes(state) ? 'temporal' : state,
      slotsUsed: isFallen ? 0n : lowest(tenants),
      turnsUsed: isFallen || isReturning ? lowest(tenants) : 0n,
    };
  });
}

const wanted = (profile: SliceProfile): fc.Arbitrary<Wanted> =>
  fc.record({
    teamId: fc.constantFrom('ours', 'theirs'),
    profile: fc.constant(profile),
    vgpus: fc.integer({ min: 1, max: 5 }),
  });

interface Case {
  pool: PoolState;
  rules: PlacingRules;
  asks: Wanted[];
}

const mpsCase: fc.Arbitrary<Case> = fc.boolean().chain((allowFallback) =>
  fc.record({
    pool: fc.record({
      gpus: fc
        .integer({ min: 1, max: 4 })
        .chain((count) => fc.tuple(...Array.from({ length: count }, (_, at) => aGpu(String(at), allowFallback)))),
      waiting: fc.constant([]),
    }),
    rules: fc.constant(mpsRules(allowFallback)),
    asks: fc.array(wanted(half), { minLength: 1, maxLength: 6 }),
  }),
);

/** One after the other; what was decided on each, and what the pool has become. */
function decideAll({ pool, rules, asks }: Case): { decisions: Decision[]; pool: PoolState } {
  let state = pool;
  const decisions = asks.map((ask) => {
    const decided = schedule(state, ask, rules);
    state = decided.pool;
    return decided.decision;
  });
  return { decisions, pool: state };
}

/** The same GPUs when all that they are at is over and has succeeded. */
const rested = (gpus: readonly GpuRoom[]): GpuRoom[] =>
  gpus.map((gpu) => {
    if (gpu.state === 'to_temporal' || gpu.state === 'doubting_temporal')
      return { ...gpu, state: 'temporal', slotsUsed: 0n };
    if (gpu.state === 'to_spatial' || gpu.state === 'doubting_spatial')
      return { ...gpu, state: 'spatial', turnsUsed: 0n };
    if (gpu.state === 'preparing') return { ...gpu, state: gpu.turnsUsed === 0n ? 'spatial' : 'temporal' };
    return gpu;
  });
const isAtRest = (gpus: readonly GpuRoom[]) =>
  gpus.every(({ state }) => ['spatial', 'temporal', 'offline'].includes(state));

describe('what is decided on requests for shares, one after the other', () => {
  it('law: a request is refused if and only if the pool cannot hold it with all that holds or waits before it', () => {
    fc.assert(
      fc.property(mpsCase, (all) => {
        let free = capacityOf(all.pool.gpus, all.rules);
        decideAll(all).decisions.forEach(({ kind }, at) => {
          const { vgpus } = all.asks[at]!;
          expect(kind !== 'refuse').toBe(vgpus <= free);
          if (kind !== 'refuse') free -= vgpus;
        });
      }),
      runs(500),
    );
  });

  it('law: nothing waits where every GPU is at rest', () => {
    fc.assert(
      fc.property(mpsCase, (all) => {
        const pool = { ...all.pool, gpus: rested(all.pool.gpus) };
        fc.pre(isAtRest(pool.gpus));
        const first = schedule(pool, all.asks[0]!, all.rules);
        expect(first.decision.kind).not.toBe('wait');
      }),
      runs(300),
    );
  });

  it('law: whatever came after it, each that waits is served once every GPU is at rest', async () => {
    await fc.assert(
      fc.asyncProperty(mpsCase, async (all) => {
        const { pool, decisions } = decideAll(all);
        const served = await scheduleInTurn({ gpus: rested(pool.gpus), waiting: [] }, pool.waiting, all.rules);
        expect(served.map(({ kind }) => kind)).toEqual(pool.waiting.map(() => 'lease'));
        expect(served.length).toBe(decisions.filter(({ kind }) => kind === 'wait').length);
      }),
      runs(500),
    );
  });

  it('law: as the GPUs are, each that is served takes nothing from those that waited before it and still do', async () => {
    await fc.assert(
      fc.asyncProperty(mpsCase, async (all) => {
        const { pool } = decideAll(all);
        const state = decideAll({
          pool: { gpus: pool.gpus, waiting: [] },
          rules: all.rules,
          asks: [...pool.waiting],
        }).pool;
        const rest = await scheduleInTurn({ gpus: rested(state.gpus), waiting: [] }, state.waiting, all.rules);
        expect(rest.every(({ kind }) => kind === 'lease')).toBe(true);
      }),
      runs(300),
    );
  });
});

const mig = board.migProfiles.filter(({ name }) => ['1g.10gb', '3g.40gb', '7g.80gb'].includes(name));
const migCase: fc.Arbitrary<Case> = fc
  .record({
    pool: fc.record({
      gpus: fc.array(
        fc.record({
          gpuId: fc.constant(''),
          state: fc.constantFrom<GpuState>('spatial', 'preparing', 'offline', 'to_spatial'),
          slotsUsed: fc.constantFrom(0n, 1n, 0b1111n, 0b1111_0000n, 0b0111_0001n),
          turnsUsed: fc.constant(0n),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      waiting: fc.constant([]),
    }),
    rules: fc.record({
      isTemporal: fc.constant(false),
      turns: fc.constant(12),
      allowFallback: fc.boolean(),
      canSwitchUnderTenants: fc.constant(false),
      sold: fc.constant(mig),
    }),
    asks: fc.array(fc.constantFrom(...mig).chain(wanted), { minLength: 1, maxLength: 6 }),
  })
  .map((all) => ({
    ...all,
    pool: {
      ...all.pool,
      gpus: all.pool.gpus.map((gpu, at) => ({
        ...gpu,
        gpuId: String(at),
        turnsUsed: gpu.state === 'to_spatial' ? lowest(bits(gpu.slotsUsed)) : 0n,
      })),
    },
  }));

describe('what is decided on requests for MIG slices', () => {
  it('law: what a refusal says would fit is accepted; where nothing waits, one more of it is not', () => {
    fc.assert(
      fc.property(migCase, (all) => {
        const { pool, decisions } = decideAll(all);
        const refusal = decisions.at(-1);
        fc.pre(refusal?.kind === 'refuse' && !refusal.isQueueFull);
        if (refusal?.kind !== 'refuse') return;
        for (const profile of mig) {
          const count = refusal.fits.find((fit) => fit.profile === profile.name)?.count ?? 0;
          const ask = (vgpus: number) => schedule(pool, { teamId: 'ours', profile, vgpus }, all.rules).decision.kind;
          if (count > 0) expect(ask(count)).not.toBe('refuse');
          if (pool.waiting.length === 0) expect(ask(count + 1)).toBe('refuse');
        }
      }),
      runs(500),
    );
  });

  it('law: whatever came after it, each that waits is served once every GPU is at rest', async () => {
    await fc.assert(
      fc.asyncProperty(migCase, async (all) => {
        const { pool } = decideAll(all);
        const served = await scheduleInTurn({ gpus: rested(pool.gpus), waiting: [] }, pool.waiting, all.rules);
        expect(served.map(({ kind }) => kind)).toEqual(pool.waiting.map(() => 'lease'));
      }),
      runs(500),
    );
  });
});

it.each([
  ['shares', mpsCase],
  ['MIG slices', migCase],
])('law: what is expected of a pool is carried along as it would be made anew: %s', async (_, cases) => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ pool, rules, asks }) => {
      let { gpus, waiting } = pool;
      const anew = asks.map((ask) => {
        const decided = schedule({ gpus, waiting }, ask, rules);
        ({ gpus, waiting } = decided.pool);
        return decided.decision;
      });
      expect(await scheduleInTurn(pool, asks, rules)).toEqual(anew);
    }),
    runs(500),
  );
});

describe('many requests for a large pool beside a queue', () => {
  const returning: GpuRoom = { gpuId: '1', state: 'to_spatial', slotsUsed: 0b01n, turnsUsed: 0b01n };
  const asking = (count: number, teamId: string): Wanted[] =>
    Array.from({ length: count }, () => ({ teamId, profile: half, vgpus: 1 }));

  it('look once at each GPU that is full, however many they are and wait', async () => {
    let looks = 0;
    const full = (gpuId: string): GpuRoom => ({
      gpuId,
      state: 'temporal',
      slotsUsed: 0n,
      get turnsUsed() {
        looks += 1;
        return 0b1111n;
      },
    });
    const gpus = [...Array.from({ length: 100 }, (_, at) => full(String(at + 2))), returning];
    const looksOf = async (requests: number): Promise<number> => {
      looks = 0;
      const asks = [{ teamId: 'theirs', profile: half, vgpus: 2 }, ...asking(requests, 'ours')];
      await scheduleInTurn({ gpus, waiting: asking(10, 'others') }, asks, mpsRules(true));
      return looks;
    };
    expect(await looksOf(1)).toBeGreaterThanOrEqual(100);
    expect(await looksOf(50)).toBe(await looksOf(1));
  });

  it('leave the event loop to others between two of them', async () => {
    let isOver = false;
    let others = 0;
    const other = (): void => {
      others += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    await scheduleInTurn({ gpus: [returning], waiting: asking(3, 'others') }, asking(40, 'ours'), mpsRules(true));
    isOver = true;
    expect(others).toBeGreaterThanOrEqual(39);
  });
});

describe('how many may wait', () => {
  const returning: GpuRoom = { gpuId: '1', state: 'to_spatial', slotsUsed: 0b11n, turnsUsed: 0b11n };
  const gpus = (count: number) => Array.from({ length: count }, (_, at) => ({ ...returning, gpuId: String(at) }));
  const queue = (count: number, teamId: (at: number) => string): Wanted[] =>
    Array.from({ length: count }, (_, at) => ({ teamId: teamId(at), profile: half, vgpus: 1 }));
  const wantedBy = (requestedBy: string | null, teamId = `of ${requestedBy}`): Wanted => ({
    teamId,
    requestedBy,
    profile: half,
    vgpus: 1,
  });
  const ask = (waiting: Wanted[]) =>
    schedule({ gpus: gpus(200), waiting }, { teamId: 'ours', profile: half, vgpus: 1 }, mpsRules(true)).decision;

  it.each([
    [maxWaiting.team - 1, 'wait'],
    [maxWaiting.team, 'refuse'],
  ])('where %i of a team wait for a pool, the next of that team: %s', (count, expected) => {
    expect(ask(queue(count, () => 'ours'))).toMatchObject({ kind: expected });
    expect(ask(queue(count, () => 'theirs'))).toMatchObject({ kind: 'wait' });
  });

  it('where four teams have taken all that they may, one that has none waits beside them', async () => {
    const asked = [...queue(80, (at) => `team ${at % 4}`), ...queue(1, () => 'ours')];
    const decisions = await scheduleInTurn({ gpus: gpus(50), waiting: [] }, asked, mpsRules(true));
    expect(decisions.at(-1)).toMatchObject({ kind: 'wait' });
    expect(decisions.at(-2)).toEqual({ kind: 'refuse', isQueueFull: true, fits: [] });
  });

  it('law: whatever one person asks for in however many teams, they have what one team may have, and others wait beside them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 59 }), { minLength: 30, maxLength: 80 }), async (teams) => {
        const theirs = teams.map((at) => ({ ...wantedBy('one'), teamId: `team ${at}` }));
        const asked = [...theirs, wantedBy('another member', 'team 0'), wantedBy('another'), wantedBy(null)];
        const decisions = await scheduleInTurn({ gpus: gpus(50), waiting: [] }, asked, mpsRules(true));
        const waits = decisions.map(({ kind }) => kind === 'wait');
        expect(waits.slice(0, teams.length)).toEqual(teams.map((_, at) => at < maxWaiting.team));
        expect(waits.slice(teams.length + 1)).toEqual([true, true]);
        const ofTeam = teams.slice(0, maxWaiting.team).filter((at) => at === 0).length;
        expect(waits[teams.length]).toBe(ofTeam < maxWaiting.team);
      }),
      runs(20),
    );
  });

  it('of nobody, such as those of before the release, count for their teams alone', async () => {
    const asked = Array.from({ length: 30 }, (_, at) => wantedBy(null, `team ${at}`));
    const decisions = await scheduleInTurn({ gpus: gpus(50), waiting: [] }, asked, mpsRules(true));
    expect(decisions.every(({ kind }) => kind === 'wait')).toBe(true);
  });

  it('law: in whatever order fifteen teams ask, one that has none may wait beside them', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 14 }), { maxLength: 300 }), (order) => {
        const waiting = new Map<number, number>();
        let all = 0;
        for (const team of order) {
          const ofTeam = waiting.get(team) ?? 0;
          if (ofTeam >= mostOfTeam(all)) continue;
          waiting.set(team, ofTeam + 1);
          all += 1;
        }
        expect(mostOfTeam(all)).toBeGreaterThanOrEqual(1);
        expect(mostOfTeam(all)).toBeLessThanOrEqual(maxWaiting.team);
      }),
      runs(100),
    );
    expect([0, 32, 48, 63, 64].map(mostOfTeam)).toEqual([maxWaiting.team, maxWaiting.team, 2, 1, 0]);
  });

  it('is no question for those that wait already, as a replica of the release before let them', async () => {
    const waiting = queue(maxWaiting.pool, (at) => `team ${at % 4}`).map((wanted) => ({ ...wanted, isQueued: true }));
    const served = await scheduleInTurn({ gpus: gpus(50), waiting: [] }, waiting, mpsRules(true));
    expect(served.map(({ kind }) => kind)).toEqual(waiting.map(() => 'wait'));
  });
});

describe('what has to be on one node', () => {
  const on = (nodeId: string, gpuId: string, state: GpuState, slotsUsed = 0n): GpuRoom => ({
    gpuId,
    nodeId,
    state,
    slotsUsed,
    turnsUsed: 0n,
  });
  const ask = (gpus: readonly GpuRoom[], vgpus: number, waiting: Wanted[] = []) =>
    schedule({ gpus, waiting }, { teamId: 'ours', profile: half, vgpus, isOnOneNode: true }, mpsRules(false)).decision;

  it('is leased on a node that has room for all of it, and refused where none has, saying the most that one has', () => {
    const gpus = [on('a', '1', 'spatial', 0b1n), on('b', '2', 'spatial', 0b1n), on('b', '3', 'spatial')];
    const decision = ask(gpus, 3);
    expect(decision.kind === 'lease' && decision.plans.map(({ gpu }) => gpu.nodeId)).toEqual(['b', 'b']);
    expect(ask(gpus, 4)).toEqual({ kind: 'refuse', isQueueFull: false, fits: [{ profile: half.name, count: 3 }] });
    expect(
      schedule({ gpus, waiting: [] }, { teamId: 'ours', profile: half, vgpus: 4 }, mpsRules(false)).decision.kind,
    ).toBe('lease');
  });

  it.each<[string, number, GpuRoom, GpuRoom]>([
    ['that is in use before one that is being prepared', 2, on('a', '1', 'preparing'), on('b', '2', 'temporal')],
    [
      'of another node before one whose node has failed',
      2,
      { ...on('a', '1', 'spatial'), isAvoided: true },
      on('b', '2', 'preparing'),
    ],
    [
      'without tenants before one whose tenant would lose isolation',
      3,
      on('a', '1', 'spatial', 1n),
      on('b', '2', 'spatial'),
    ],
    [
      'before one that failed to fall back last',
      3,
      { ...on('a', '1', 'spatial'), stayedAt: new Date(1) },
      on('b', '2', 'spatial', 1n),
    ],
    [
      'that failed to fall back before one that failed after it',
      3,
      { ...on('a', '1', 'spatial'), stayedAt: new Date(2) },
      { ...on('b', '2', 'spatial', 1n), stayedAt: new Date(1) },
    ],
  ])('goes to a GPU %s', (_, vgpus, worse, better) => {
    const wanted = { teamId: 'ours', profile: half, vgpus, isOnOneNode: true };
    const { decision } = schedule({ gpus: [worse, better], waiting: [] }, wanted, mpsRules(true));
    expect(decision.kind === 'lease' && decision.plans.map(({ gpu }) => gpu.nodeId)).toEqual(['b']);
  });

  it('waits for the GPUs of one node to be at rest, as one request among others', () => {
    const gpus = [on('a', '1', 'spatial'), on('b', '2', 'to_spatial', 0b1n), on('b', '3', 'spatial', 0b1n)];
    const before: Wanted = { teamId: 'theirs', profile: half, vgpus: 2, isOnOneNode: true };
    expect(ask(gpus, 2).kind).toBe('lease');
    expect(ask(gpus, 2, [before, before]).kind).toBe('refuse');
  });
});
