import { describe, expect, it } from '@jest/globals';
import { boardNamed, boards, mpsProfile, timeSliceProfile, type SliceProfile } from '@atoll/gpu';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import type { GpuState } from '../model/gpu.machine.js';
import { planLeases, roomOn, type GpuPlan, type GpuRoom, type PlacingRules } from './plan.js';

/** A pool as a search finds it, and what is asked of it. */
interface Search {
  gpus: GpuRoom[];
  profile: SliceProfile;
  vgpus: number;
  rules: PlacingRules;
}

const onWayToTemporal = ['temporal', 'to_temporal', 'doubting_temporal'];
const onWayToSpatial = ['to_spatial', 'doubting_spatial'];
const lowest = (count: number) => (1n << BigInt(count)) - 1n;

/**
 * Everything below is written without masks and without the search: what the laws are checked against shares nothing
 * with the code.
 */
const bitsIn = (mask: bigint) =>
  new Set([...mask.toString(2)].toReversed().flatMap((bit, at) => (bit === '1' ? [at] : [])));
const slotsOf = ({ size }: SliceProfile, start: number) => Array.from({ length: size }, (_, at) => start + at);

/** The most slices that any arrangement in the free slots holds, by trying each start first. */
function mostSlices(profile: SliceProfile, taken: ReadonlySet<number>, from = 0): number {
  let most = 0;
  for (const start of profile.starts.filter((candidate) => candidate >= from)) {
    const slots = slotsOf(profile, start);
    if (slots.some((slot) => taken.has(slot))) continue;
    most = Math.max(most, 1 + mostSlices(profile, new Set([...taken, ...slots]), start + 1));
  }
  return most;
}

function capacityAsIs({ state, slotsUsed, turnsUsed }: GpuRoom, { profile, rules }: Search): number {
  const slots = mostSlices(profile, bitsIn(slotsUsed));
  const turns = Math.max(0, rules.turns - bitsIn(turnsUsed).size);
  if (state === 'spatial') return slots;
  if (onWayToSpatial.includes(state)) return Math.min(slots, turns);
  if (onWayToTemporal.includes(state) || state === 'configured_temporal') return turns;
  if (state !== 'preparing') return 0;
  if (rules.isTemporal) return turns;
  return turnsUsed === 0n ? slots : 0;
}

const stayedAtOf = (gpu: GpuRoom | undefined) => gpu?.stayedAt?.getTime() ?? 0;
const isDoubtful = (gpu: GpuRoom | undefined) => stayedAtOf(gpu) > 0 || gpu?.isAvoided === true;

/** null: it may not fall back. */
function capacityFallen({ state, slotsUsed }: GpuRoom, { rules }: Search): number | null {
  const tenants = bitsIn(slotsUsed).size;
  if (!rules.allowFallback || state !== 'spatial' || (tenants > 0 && !rules.canSwitchUnderTenants)) return null;
  return Math.max(0, rules.turns - tenants);
}

/**
 * The fewest GPUs that must fall back, by trying every set of them: first the fewest that may fail to, then in all;
 * null: the pool cannot hold what is asked.
 */
function fewestFallbacks(search: Search): { doubtful: number; all: number } | null {
  const all = search.gpus.map((gpu) => ({ asIs: capacityAsIs(gpu, search), fallen: capacityFallen(gpu, search) }));
  let fewest: { doubtful: number; all: number } | null = null;
  for (let set = 0n; set < 1n << BigInt(all.length); set += 1n) {
    const falling = bitsIn(set);
    if ([...falling].some((at) => all[at]?.fallen === null)) continue;
    const held = all.reduce((sum, { asIs, fallen }, at) => sum + (falling.has(at) ? (fallen ?? 0) : asIs), 0);
    if (held < search.vgpus) continue;
    const found = { doubtful: [...falling].filter((at) => isDoubtful(search.gpus[at])).length, all: falling.size };
    if (
      !fewest ||
      found.doubtful - fewest.doubtful < 0 ||
      (found.doubtful === fewest.doubtful && found.all < fewest.all)
    )
      fewest = found;
  }
  return fewest;
}

/** A GPU in any state, with what can be leased there in that state. */
function aGpu(gpuId: string, slots: number, turns: number, isTemporal: boolean): fc.Arbitrary<GpuRoom> {
  const mask = (bits: number) => fc.bigInt({ min: 0n, max: lowest(bits) });
  const states: GpuState[] = isTemporal
    ? ['configured_temporal', 'preparing', 'offline']
    : [
        'spatial',
        'spatial',
        'spatial',
        'preparing',
        'to_temporal',
        'doubting_temporal',
        'temporal',
        'to_spatial',
        'doubting_spatial',
        'offline',
      ];
  const stays = fc.constantFrom(null, null, new Date(1), new Date(2));
  const gpu = fc.tuple(fc.constantFrom(...states), mask(slots), mask(turns), stays, fc.boolean());
  return gpu.map(([state, slotsUsed, turnsUsed, stayedAt, isAvoided]) => {
    const hasTurns =
      isTemporal ||
      onWayToTemporal.includes(state) ||
      onWayToSpatial.includes(state) ||
      (state === 'preparing' && slotsUsed % 2n === 0n);
    const hasSlots = !isTemporal && state !== 'temporal' && !(state === 'preparing' && hasTurns);
    return {
      gpuId,
      state,
      slotsUsed: hasSlots ? slotsUsed : 0n,
      turnsUsed: hasTurns ? turnsUsed : 0n,
      stayedAt: state === 'spatial' ? stayedAt : null,
      isAvoided,
    };
  });
}

interface Kind {
  sold: readonly SliceProfile[];
  slots: number;
  isTemporal: boolean;
  canSwitchUnderTenants: boolean;
}

const a100 = boardNamed('A100-80GB') ?? boards[0];
if (!a100) throw new Error('There are no boards.');
const migBoards = boards.filter(({ memorySlices }) => memorySlices > 0);
const mig: fc.Arbitrary<Kind> = fc
  .constantFrom(...migBoards)
  .chain(({ migProfiles, memorySlices: slots }) =>
    fc
      .subarray([...migProfiles], { minLength: 1 })
      .map((sold) => ({ sold, slots, isTemporal: false, canSwitchUnderTenants: false })),
  );
const mps: fc.Arbitrary<Kind> = fc
  .integer({ min: 2, max: 6 })
  .map((slots) => ({ sold: [mpsProfile(a100, slots)], slots, isTemporal: false, canSwitchUnderTenants: true }));
const timeSlicing: fc.Arbitrary<Kind> = fc
  .integer({ min: 2, max: 6 })
  .map((slots) => ({ sold: [timeSliceProfile(a100, slots)], slots, isTemporal: true, canSwitchUnderTenants: true }));

const search: fc.Arbitrary<Search> = fc
  .oneof(mig, mps, timeSlicing)
  .chain(({ sold, slots, isTemporal, canSwitchUnderTenants }) =>
    fc
      .tuple(fc.boolean(), fc.integer({ min: slots + 1, max: slots + 4 }), fc.integer({ min: 0, max: 5 }))
      .chain(([isAllowed, more, count]) => {
        const allowFallback = isAllowed && !isTemporal;
        const turns = isTemporal ? slots : allowFallback ? more : 0;
        return fc.record({
          gpus: fc.tuple(...Array.from({ length: count }, (_, at) => aGpu(`${at + 1}`, slots, turns, isTemporal))),
          profile: fc.constantFrom(...sold),
          vgpus: fc.integer({ min: 1, max: 3 * slots }),
          rules: fc.constant({ isTemporal, turns, allowFallback, canSwitchUnderTenants, sold }),
        });
      }),
  );

const plan = ({ gpus, profile, vgpus, rules }: Search) => planLeases(gpus, profile, vgpus, rules);

/** Checks what holds for each plan that there is. */
function law(name: string, check: (plans: GpuPlan[], search: Search) => void, ordinaryRuns = 1_000): void {
  it(`law: ${name}`, () => {
    const property = fc.property(search, (asked) => {
      const plans = plan(asked);
      if (plans) check(plans, asked);
    });
    fc.assert(property, runs(ordinaryRuns));
  });
}

function expectDisjoint(numbers: readonly number[], taken: ReadonlySet<number>): void {
  expect(new Set([...taken, ...numbers]).size).toBe(taken.size + numbers.length);
}

describe('a plan of leases', () => {
  it('law: exists if and only if the pool can hold what is asked, as it is or with GPUs that may fall back', () => {
    fc.assert(
      fc.property(search, (asked) => expect(plan(asked) !== null).toBe(fewestFallbacks(asked) !== null)),
      runs(2_000),
    );
  });

  law('lets first the fewest doubtful GPUs fall back, then the fewest in all', (plans, asked) => {
    const falling = plans.filter(({ fallsBack }) => fallsBack);
    const doubtful = falling.filter(({ gpu }) => isDoubtful(gpu)).length;
    expect({ doubtful, all: falling.length }).toEqual(fewestFallbacks(asked));
  });

  law(
    'takes their isolation from tenants only where no GPU that stayed before, or with fewer, would do as well',
    (plans, asked) => {
      const gainOf = (gpu: GpuRoom) => (capacityFallen(gpu, asked) ?? 0) - capacityAsIs(gpu, asked);
      const tenantsOf = ({ slotsUsed }: GpuRoom) => bitsIn(slotsUsed).size;
      const falling = plans.flatMap(({ gpu, fallsBack }) => (fallsBack ? [gpu] : []));
      for (const gpu of falling) {
        const others = asked.gpus.filter((other) => !falling.includes(other) && isDoubtful(other) === isDoubtful(gpu));
        const better = others
          .filter((other) => gainOf(other) >= gainOf(gpu))
          .filter((other) =>
            stayedAtOf(other) === stayedAtOf(gpu)
              ? tenantsOf(other) < tenantsOf(gpu)
              : stayedAtOf(other) < stayedAtOf(gpu),
          );
        expect(better).toEqual([]);
      }
    },
    30_000,
  );

  law(
    'is for as many as were asked for, neither more nor less, with one part a GPU and none that is empty',
    (plans, { vgpus, gpus }) => {
      expect(plans.reduce((sum, { places }) => sum + places.length, 0)).toBe(vgpus);
      expect(plans.every(({ places }) => places.length > 0)).toBe(true);
      expect(new Set(plans.map(({ gpu }) => gpu.gpuId)).size).toBe(plans.length);
      expect(gpus).toEqual(expect.arrayContaining(plans.map(({ gpu }) => gpu)));
    },
  );

  law('has slices only where the profile may begin and nobody is, in slots and never twice', (plans, { profile }) => {
    for (const { gpu, places } of plans) {
      const starts = places.flatMap(({ slotStart }) => slotStart ?? []);
      expect(profile.starts).toEqual(expect.arrayContaining(starts));
      expectDisjoint(
        starts.flatMap((start) => slotsOf(profile, start)),
        bitsIn(gpu.slotsUsed),
      );
    }
  });

  law('has turns only that there are and nobody has, those of who is moved to a turn included', (plans, { rules }) => {
    for (const { gpu, places, fallsBack } of plans) {
      const turns = places.flatMap(({ turn }) => turn ?? []);
      expect(turns.every((turn) => turn >= 0 && turn < rules.turns)).toBe(true);
      // Whoever is on a GPU that falls back gets the first turns.
      expectDisjoint(turns, fallsBack ? bitsIn(lowest(bitsIn(gpu.slotsUsed).size)) : bitsIn(gpu.turnsUsed));
    }
  });

  law(
    'has slots on what is Spatial or will be, turns on what is Temporal or will be, and both where it may yet stay',
    (plans, { rules }) => {
      for (const { gpu, places, fallsBack } of plans) {
        const isLeaving = onWayToSpatial.includes(gpu.state);
        const hasTurn = fallsBack || rules.isTemporal || isLeaving || onWayToTemporal.includes(gpu.state);
        const hasSlot = !fallsBack && !rules.isTemporal && !onWayToTemporal.includes(gpu.state);
        for (const { slotStart, turn } of places)
          expect([slotStart !== null, turn !== null]).toEqual([hasSlot, hasTurn]);
      }
    },
  );

  law(
    'never lets a GPU fall back where the pool does not allow it, nor one that is cut by MIG while anything is leased of it',
    (plans, { rules }) => {
      for (const { gpu } of plans.filter(({ fallsBack }) => fallsBack)) {
        expect([rules.allowFallback, gpu.state]).toEqual([true, 'spatial']);
        if (!rules.canSwitchUnderTenants) expect(gpu.slotsUsed).toBe(0n);
      }
    },
  );

  law(
    'waits for a GPU that is switching, or lets one fall back, only when those at rest are full',
    (plans, asked) => {
      const isAtRest = ({ state }: GpuRoom) => ['spatial', 'configured_temporal', 'temporal'].includes(state);
      const used = (gpu: GpuRoom) => plans.find((each) => each.gpu === gpu)?.places.length ?? 0;
      const falling = new Set(plans.flatMap(({ gpu, fallsBack }) => (fallsBack ? [gpu] : [])));
      const awaited = plans.filter(({ gpu, fallsBack }) => fallsBack || !isAtRest(gpu));
      for (const gpu of asked.gpus.filter(isAtRest)) {
        // One whose node has failed of late comes after those of other nodes, though these are waited for.
        const isEarlier = awaited.some((each) => each.fallsBack || each.gpu.isAvoided || !gpu.isAvoided);
        if (isEarlier && !falling.has(gpu)) expect(used(gpu)).toBe(capacityAsIs(gpu, asked));
      }
    },
    8_000,
  );

  law(
    'uses a GPU whose node has failed of late only when those of other nodes are full',
    (plans, asked) => {
      if (!plans.some(({ gpu, fallsBack }) => gpu.isAvoided && !fallsBack)) return;
      for (const gpu of asked.gpus.filter(({ isAvoided }) => !isAvoided)) {
        const own = plans.find((each) => each.gpu === gpu);
        if (!own?.fallsBack) expect(own?.places.length ?? 0).toBe(capacityAsIs(gpu, asked));
      }
    },
    4_000,
  );

  law('fills the GPUs that hold most already before it begins on an empty one', (plans, asked) => {
    const spatial = plans.filter(({ gpu, fallsBack }) => gpu.state === 'spatial' && !fallsBack);
    const fullness = ({ slotsUsed }: GpuRoom) => bitsIn(slotsUsed).size;
    for (const { gpu } of spatial) {
      for (const other of asked.gpus.filter(({ state }) => state === 'spatial')) {
        if (other.isAvoided && !gpu.isAvoided) continue;
        if (fullness(other) <= fullness(gpu) || plans.some((each) => each.gpu === other && each.fallsBack)) continue;
        const used = plans.find((each) => each.gpu === other)?.places.length ?? 0;
        expect(used).toBe(capacityAsIs(other, asked));
      }
    }
  });

  it('law: is the same for the same pool, in whatever order its GPUs are listed', () => {
    const shuffled = search.chain((asked) =>
      fc.shuffledSubarray(asked.gpus, { minLength: asked.gpus.length }).map((gpus) => ({ asked, gpus })),
    );
    fc.assert(
      fc.property(shuffled, ({ asked, gpus }) => expect(plan({ ...asked, gpus })).toEqual(plan(asked))),
      runs(300),
    );
  });
});

describe('room', () => {
  it('law: of a GPU is the most that could be leased there as it is', () => {
    fc.assert(
      fc.property(search, (asked) => {
        for (const gpu of asked.gpus) expect(roomOn(gpu, asked.profile, asked.rules)).toBe(capacityAsIs(gpu, asked));
      }),
      runs(1_000),
    );
  });

  it.each(['unpooled', 'offline'] as const)('of a GPU that is %s is none, and it does not fall back', (state) => {
    const profile = mpsProfile(a100, 2);
    const rules = { isTemporal: false, turns: 4, allowFallback: true, canSwitchUnderTenants: true, sold: [profile] };
    const gpu = { gpuId: '1', state, slotsUsed: 0n, turnsUsed: 0n };
    expect([roomOn(gpu, profile, rules), planLeases([gpu], profile, 1, rules)]).toEqual([0, null]);
  });
});

it('law: a GPU in Temporal has room for all turns that are not taken, wherever these are', () => {
  const profile = timeSliceProfile(boardNamed('A100-80GB')!, 48);
  const rules = { isTemporal: true, turns: 48, allowFallback: false, canSwitchUnderTenants: true, sold: [profile] };
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: lowest(48) }), (turnsUsed) => {
      const gpu: GpuRoom = { gpuId: '1', state: 'configured_temporal', slotsUsed: 0n, turnsUsed };
      expect(roomOn(gpu, profile, rules)).toBe(48 - bitsIn(turnsUsed).size);
    }),
    runs(500),
  );
});
