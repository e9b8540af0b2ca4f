import { maskOf, place, room, type SliceProfile } from '@atoll/gpu';
import type { GpuState } from '../model/gpu.machine.js';
import { settledStates } from './pool-terms.js';

/** A GPU of a pool, as far as the search for room sees it. */
export interface GpuRoom {
  readonly gpuId: string;
  /** Tells GPUs of different nodes apart, where all of a request has to be on one. */
  readonly nodeId?: string;
  readonly state: GpuState;
  /** Bit i: slot i is leased. */
  readonly slotsUsed: bigint;
  readonly turnsUsed: bigint;
  /** Whether its node has failed of late: it comes after all others. */
  readonly isAvoided?: boolean;
  /**
   * When it was to fall back last and stayed in Spatial; null: it did not. It falls back after all others, and after
   * those that stayed before.
   */
  readonly stayedAt?: Date | null;
}

/** What a pool lets happen on its GPUs. */
export interface PlacingRules {
  readonly isTemporal: boolean;
  /** Turns of a GPU in Temporal. */
  readonly turns: number;
  readonly allowFallback: boolean;
  /** Whether a GPU can fall back while slices of it are leased. */
  readonly canSwitchUnderTenants: boolean;
  readonly sold: readonly SliceProfile[];
}

export interface Place {
  /** null: a turn alone. */
  readonly slotStart: number | null;
  /** null: slots alone. */
  readonly turn: number | null;
}

/** What is leased on one GPU. */
export interface GpuPlan {
  readonly gpu: GpuRoom;
  readonly places: readonly Place[];
  /** The GPU has to switch to Temporal first, and whoever is on it gets a turn. */
  readonly fallsBack: boolean;
}

/**
 * The order in which GPUs are filled: settled ones before those that requests wait for, slices before turns, full ones
 * before empty ones. Those of nodes that have failed of late come after all others.
 */
const order: readonly GpuState[] = [
  'spatial',
  'configured_temporal',
  'temporal',
  'preparing',
  'to_spatial',
  'doubting_spatial',
  'to_temporal',
  'doubting_temporal',
];

/** How many slices of the profile a GPU can take as it is, or when the switch it is in is over. */
export function roomOn(gpu: GpuRoom, profile: SliceProfile, rules: PlacingRules): number {
  const free = rules.turns - popCount(gpu.turnsUsed);
  switch (gpu.state) {
    case 'spatial':
      return room(profile, gpu.slotsUsed);
    case 'preparing':
      if (rules.isTemporal) return free;
      return gpu.turnsUsed === 0n ? room(profile, gpu.slotsUsed) : 0;
    case 'to_spatial':
    case 'doubting_spatial':
      return Math.min(free, room(profile, gpu.slotsUsed));
    case 'configured_temporal':
    case 'temporal':
    case 'to_temporal':
    case 'doubting_temporal':
      return Math.max(0, free);
    default:
      return 0;
  }
}

/** How many a GPU can take if it falls back; 0 where it may not. */
export function roomByFallback(gpu: GpuRoom, rules: PlacingRules): number {
  const may = rules.allowFallback && gpu.state === 'spatial' && (rules.canSwitchUnderTenants || gpu.slotsUsed === 0n);
  return may ? Math.max(0, rules.turns - tenantsOn(gpu)) : 0;
}

/** How many are on a GPU in Spatial that can fall back: no slice of it is larger than one slot, or none is leased. */
export function tenantsOn({ slotsUsed }: GpuRoom): number {
  return popCount(slotsUsed);
}

/**
 * Where `vgpus` slices of the profile go; null if and only if the pool cannot hold them. GPUs fall back only for what
 * fits nowhere as it is: first the fewest doubtful GPUs, then the fewest in all.
 */
export function planLeases(
  gpus: readonly GpuRoom[],
  profile: SliceProfile,
  vgpus: number,
  rules: PlacingRules,
): GpuPlan[] | null {
  const asIs = new Set<GpuRoom>();
  let missing = vgpus;
  for (const gpu of gpus) {
    const count = roomOn(gpu, profile, rules);
    if (count > 0) asIs.add(gpu);
    missing -= count;
  }
  const falling = missing > 0 ? fallingFor(missing, gainsOf(gpus, profile, rules)) : [];
  if (!falling) return null;
  for (const gpu of falling) asIs.delete(gpu);
  return fill(inOrder([...asIs]), falling, profile, vgpus, rules);
}

interface Gain {
  readonly gpu: GpuRoom;
  readonly gain: number;
}

/**
 * What each GPU that falls back can take beside what it can as it is: the largest first, and of equal ones those that
 * stayed the longest ago, so that one that always stays blocks none, then those with the fewest tenants, who lose their
 * isolation.
 */
function gainsOf(gpus: readonly GpuRoom[], profile: SliceProfile, rules: PlacingRules): Gain[] {
  return gpus
    .map((gpu) => ({ gpu, gain: roomByFallback(gpu, rules) - roomOn(gpu, profile, rules) }))
    .filter(({ gain }) => gain > 0)
    .toSorted(
      (one, other) =>
        other.gain - one.gain ||
        stayedAtOf(one.gpu) - stayedAtOf(other.gpu) ||
        tenantsOn(one.gpu) - tenantsOn(other.gpu) ||
        byId(one.gpu, other.gpu),
    );
}

/** The GPUs that fall back to gain as much as is missing; null: they cannot. Doubtful ones make up for the others. */
function fallingFor(missing: number, gains: readonly Gain[]): GpuRoom[] | null {
  const { sound = [], doubtful = [] } = Object.groupBy(gains, ({ gpu }) => (isDoubtful(gpu) ? 'doubtful' : 'sound'));
  const last = firstOf(doubtful, missing - sumOf(sound));
  const first = firstOf(sound, missing - sumOf(last));
  if (sumOf(first) + sumOf(last) < missing) return null;
  return [...first, ...last].map(({ gpu }) => gpu);
}

/** As many as gain so much in sum, or all. */
function firstOf(gains: readonly Gain[], needed: number): readonly Gain[] {
  let left = needed;
  return gains.filter(({ gain }) => {
    const isNeeded = left > 0;
    left -= gain;
    return isNeeded;
  });
}

function sumOf(gains: readonly Gain[]): number {
  return gains.reduce((sum, { gain }) => sum + gain, 0);
}

/** Whether a GPU may well fail to fall back. */
function isDoubtful({ stayedAt = null, isAvoided = false }: GpuRoom): boolean {
  return stayedAt !== null || isAvoided;
}

/** In milliseconds since 1970; 0: it did not stay. */
function stayedAtOf({ stayedAt }: GpuRoom): number {
  return stayedAt?.getTime() ?? 0;
}

function fill(
  asIs: GpuRoom[],
  falling: GpuRoom[],
  profile: SliceProfile,
  vgpus: number,
  rules: PlacingRules,
): GpuPlan[] {
  const plans: GpuPlan[] = [];
  let left = vgpus;
  for (const gpu of asIs) {
    if (left <= 0) break;
    const count = Math.min(left, roomOn(gpu, profile, rules));
    if (count > 0) plans.push({ gpu, places: placesOn(gpu, profile, count, rules), fallsBack: false });
    left -= count;
  }
  for (const gpu of falling) {
    const tenants = tenantsOn(gpu);
    const count = Math.min(left, rules.turns - tenants);
    if (count > 0) plans.push({ gpu, places: turnsFrom(maskOf(0, tenants), count), fallsBack: true });
    left -= count;
  }
  return plans;
}

/** The drawbacks of a plan, the worst kind first: the lower each number is, the better. */
export function drawbacksOf(plans: readonly GpuPlan[]): number[] {
  const falling = plans.flatMap(({ gpu, fallsBack }) => (fallsBack ? [gpu] : []));
  return [
    Number(falling.length > 0),
    plans.filter(({ gpu }) => gpu.isAvoided).length,
    falling.filter(isDoubtful).length,
    falling.length,
    Math.max(0, ...falling.map(stayedAtOf)),
    falling.reduce((sum, gpu) => sum + tenantsOn(gpu), 0),
    Number(plans.some(({ gpu }) => !settledStates.includes(gpu.state))),
  ];
}

function placesOn(gpu: GpuRoom, profile: SliceProfile, count: number, rules: PlacingRules): Place[] {
  const starts = () => place(profile, count, gpu.slotsUsed, rules.sold) ?? [];
  const isSlots = gpu.state === 'spatial' || (gpu.state === 'preparing' && !rules.isTemporal);
  if (isSlots) return starts().map((slotStart) => ({ slotStart, turn: null }));
  const turns = turnsFrom(gpu.turnsUsed, count);
  if (gpu.state !== 'to_spatial' && gpu.state !== 'doubting_spatial') return turns;
  // Whether it arrives or stays where it is, there is a place.
  return starts().map((slotStart, at) => ({ slotStart, turn: turns[at]?.turn ?? null }));
}

/** The first free turns. */
export function turnsFrom(used: bigint, count: number): Place[] {
  const places: Place[] = [];
  for (let turn = 0; places.length < count; turn += 1)
    if (((used >> BigInt(turn)) & 1n) === 0n) places.push({ slotStart: null, turn });
  return places;
}

/** 32 at a time: a pool has thousands of GPUs, and each request looks at all of them. */
function popCount(mask: bigint): number {
  let count = 0;
  // Exact as a number: 32 bits.
  for (let rest = mask; rest > 0n; rest >>= 32n) count += popCountOfWord(Number(rest & 0xffff_ffffn));
  return count;
}

/** The sums of neighbours, of 2, 4 and 8 bits; a product adds up those of the four bytes. */
function popCountOfWord(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555);
  const nibbles = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}

/** From the one that is filled first on. A GPU is weighed once, and not for each comparison. */
function inOrder(gpus: readonly GpuRoom[]): GpuRoom[] {
  return gpus
    .map((gpu) => ({ gpu, rank: rankOf(gpu) }))
    .toSorted((one, other) => one.rank - other.rank || byId(one.gpu, other.gpu))
    .map(({ gpu }) => gpu);
}

/** Less than 64 slots are used, and there are less than 64 states. */
function rankOf({ isAvoided = false, state, slotsUsed }: GpuRoom): number {
  return (Number(isAvoided) * 64 + order.indexOf(state)) * 64 - popCount(slotsUsed);
}

function byId(one: GpuRoom, other: GpuRoom): number {
  return Number(one.gpuId) - Number(other.gpuId);
}
