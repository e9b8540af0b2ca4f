import { setImmediate as turn } from 'node:timers/promises';
import type { AppError } from '@atoll/errors';
import { maskOf, type SliceProfile } from '@atoll/gpu';
import { fairShare } from '@atoll/waiting';
import {
  drawbacksOf,
  planLeases,
  roomByFallback,
  roomOn,
  tenantsOn,
  type GpuPlan,
  type GpuRoom,
  type PlacingRules,
} from '../sharing/plan.js';
import type { Whole } from '../sharing/waiting-requests.js';

/** What a request wants of a pool. */
export interface Wanted {
  readonly teamId: string;
  /** For whom it counts besides the team; null or left out: nobody. */
  readonly requestedBy?: string | null;
  readonly profile: SliceProfile;
  readonly vgpus: number;
  /** Whether all of it has to be on GPUs of one node. */
  readonly isOnOneNode?: boolean;
  readonly partOf?: Whole | undefined;
  /** Whether it waits already: then no limit of those that may wait holds for it. */
  readonly isQueued?: boolean;
}

/** A pool as one request after the other finds it. */
export interface PoolState {
  readonly gpus: readonly GpuRoom[];
  /** Requests that were accepted and have no leases yet, in their order of arrival. */
  readonly waiting: readonly Wanted[];
  /** Reused from one decision to the next; created if left out. */
  readonly outlook?: Outlook;
}

/** What is expected: every GPU at rest, and one after the other of those that wait has its leases. */
interface Outlook {
  readonly gpus: readonly GpuRoom[];
  /** Which of those that wait found a place. */
  readonly hasPlace: readonly boolean[];
}

export type Decision =
  /** It gets these leases now. */
  | { readonly kind: 'lease'; readonly plans: readonly GpuPlan[] }
  /**
   * It has no place as the GPUs are, and will have one, `later`, when those that switch or are being prepared are at
   * rest.
   */
  | { readonly kind: 'wait'; readonly later: readonly GpuPlan[] }
  /**
   * It would have no place then either, or too many wait already. `fits`: what would be accepted instead, of each
   * profile alone.
   */
  | {
      readonly kind: 'refuse';
      readonly isQueueFull: boolean;
      readonly fits: readonly { profile: string; count: number }[];
    }
  /** Of what it takes a part of too little is left, whatever the pool has. */
  | { readonly kind: 'exceed'; readonly refusal: AppError };

/** So many requests may wait for one pool, and so many of one team, or one person, while at most half of those do. */
export const maxWaiting = { pool: 64, team: 16 } as const;

/** A decision, and the pool as the next request finds it. */
interface Scheduled {
  readonly decision: Decision;
  readonly pool: PoolState;
}

/**
 * Whether a request gets leases now, waits, or is refused. Those that wait go first: a later request gets leases only
 * if each that waits would still have its place once every GPU is at rest. So nothing is delayed by what came after it,
 * and what is free to all is not held up by what waits.
 */
export function schedule(pool: PoolState, wanted: Wanted, rules: PlacingRules): Scheduled {
  const { gpus, waiting } = pool;
  const plans = planFor(gpus, wanted, rules);
  const leased = plans && applied(gpus, plans, wanted.profile);
  if (plans && leased && waiting.length === 0)
    return { decision: { kind: 'lease', plans }, pool: { gpus: leased, waiting } };
  const outlook = pool.outlook ?? outlookOf(gpus, waiting, rules);
  if (plans && leased) {
    const afterwards = outlookOf(leased, waiting, rules);
    if (outlook.hasPlace.every((had, at) => !had || afterwards.hasPlace[at])) {
      return { decision: { kind: 'lease', plans }, pool: { gpus: leased, waiting, outlook: afterwards } };
    }
  }
  const known = { gpus, waiting, outlook };
  const later = planFor(outlook.gpus, wanted, rules);
  if (!later)
    return { decision: { kind: 'refuse', isQueueFull: false, fits: fitsIn(outlook.gpus, wanted, rules) }, pool: known };
  const isQueueFull = !wanted.isQueued && waitingBeside(wanted, waiting) >= mostOfTeam(waiting.length);
  if (isQueueFull) return { decision: { kind: 'refuse', isQueueFull, fits: [] }, pool: known };
  return {
    decision: { kind: 'wait', later },
    pool: {
      gpus,
      waiting: [...waiting, wanted],
      outlook: { gpus: applied(outlook.gpus, later, wanted.profile), hasPlace: [...outlook.hasPlace, true] },
    },
  };
}

/** How many requests of its team wait, or how many of its person for whatever teams: the larger number. */
function waitingBeside({ teamId, requestedBy = null }: Wanted, waiting: readonly Wanted[]): number {
  const ofTeam = waiting.filter((other) => other.teamId === teamId).length;
  if (requestedBy === null) return ofTeam;
  return Math.max(ofTeam, waiting.filter((other) => other.requestedBy === requestedBy).length);
}

/** How many requests of one team, or one person, may wait where so many of all do. */
export function mostOfTeam(waiting: number): number {
  const { pool, team } = maxWaiting;
  return fairShare({ all: pool, free: pool - waiting, most: team });
}

/**
 * Decides on each as if it came when the one before it had what was decided. Beside a queue a decision looks at all
 * that wait, so others have the event loop between two.
 */
export async function scheduleInTurn(
  pool: PoolState,
  all: readonly Wanted[],
  rules: PlacingRules,
): Promise<Decision[]> {
  let state: PoolState = { gpus: withRoom(pool, all, rules), waiting: pool.waiting };
  const takenOf = new Map<string, number>();
  const decide = (wanted: Wanted): Decision => {
    const { partOf, vgpus } = wanted;
    const taken = takenOf.get(partOf?.id ?? '') ?? 0;
    const refusal = partOf?.refusal(taken);
    if (refusal) return { kind: 'exceed', refusal };
    const { decision, pool: next } = schedule(state, wanted, rules);
    state = next;
    if (partOf && decision.kind !== 'refuse') takenOf.set(partOf.id, taken + vgpus);
    return decision;
  };
  const decisions: Decision[] = [];
  for (const wanted of all) {
    decisions.push(decide(wanted));
    if (state.waiting.length > 0) await turn();
  }
  return decisions;
}

/**
 * The GPUs that could take something, as they are or once they are at rest. Full ones, which most of a busy pool are,
 * are left out: no decision can use them.
 */
function withRoom({ gpus, waiting }: PoolState, all: readonly Wanted[], rules: PlacingRules): readonly GpuRoom[] {
  const profiles = new Set([...rules.sold, ...[...waiting, ...all].map(({ profile }) => profile)]);
  const hasRoom = (gpu: GpuRoom): boolean =>
    roomByFallback(gpu, rules) > 0 || [...profiles].some((profile) => roomOn(gpu, profile, rules) > 0);
  const later = atRest(gpus, rules);
  return gpus.filter((gpu, at) => hasRoom(gpu) || hasRoom(later[at] ?? gpu));
}

/** The GPUs as they are expected to be when what they are at is over, and has succeeded. */
function atRest(gpus: readonly GpuRoom[], rules: PlacingRules): GpuRoom[] {
  return gpus.map((gpu) => {
    switch (gpu.state) {
      case 'to_temporal':
      case 'doubting_temporal':
        return { ...gpu, state: 'temporal', slotsUsed: 0n };
      case 'to_spatial':
      case 'doubting_spatial':
        return { ...gpu, state: 'spatial', turnsUsed: 0n };
      case 'preparing':
        if (rules.isTemporal) return { ...gpu, state: 'configured_temporal' };
        return { ...gpu, state: gpu.turnsUsed === 0n ? 'spatial' : 'temporal' };
      default:
        return gpu;
    }
  });
}

function outlookOf(gpus: readonly GpuRoom[], waiting: readonly Wanted[], rules: PlacingRules): Outlook {
  let state: readonly GpuRoom[] = atRest(gpus, rules);
  const hasPlace = waiting.map((wanted) => {
    const plans = planFor(state, wanted, rules);
    if (plans) state = applied(state, plans, wanted.profile);
    return plans !== null;
  });
  return { gpus: state, hasPlace };
}

/** As `planLeases`; where all has to be on one node, the best plan of any node. */
function planFor(
  gpus: readonly GpuRoom[],
  { profile, vgpus, isOnOneNode = false }: Wanted,
  rules: PlacingRules,
): GpuPlan[] | null {
  const plans = nodesOf(gpus, isOnOneNode).flatMap((node) => {
    const found = planLeases(node, profile, vgpus, rules);
    return found ? [found] : [];
  });
  return bestPlan(plans) ?? null;
}

/** The plan with the fewest drawbacks, compared in their order; of equal ones the first. */
function bestPlan(all: readonly GpuPlan[][]): GpuPlan[] | undefined {
  if (all.length <= 1) return all[0];
  const weighed = all.map((plans) => ({ plans, drawbacks: drawbacksOf(plans) }));
  return weighed.reduce((best, each) => (compareDrawbacks(each.drawbacks, best.drawbacks) < 0 ? each : best)).plans;
}

/** By the first number in which they differ: negative where `one` has fewer, 0 where they are equal. */
function compareDrawbacks(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((number, place) => number !== other[place]);
  return at < 0 ? 0 : Number(one[at]) - Number(other[at]);
}

/** The GPUs of each node; or all of them, where it does not matter on which they are. */
function nodesOf(gpus: readonly GpuRoom[], isOnOneNode: boolean): (readonly GpuRoom[])[] {
  return isOnOneNode ? [...Map.groupBy(gpus, ({ nodeId }) => nodeId).values()] : [gpus];
}

/** The GPUs with these leases. */
function applied(gpus: readonly GpuRoom[], plans: readonly GpuPlan[], { size }: SliceProfile): readonly GpuRoom[] {
  const byId = new Map(plans.map((plan) => [plan.gpu.gpuId, plan]));
  return gpus.map((gpu) => {
    const plan = byId.get(gpu.gpuId);
    if (!plan) return gpu;
    let { state, slotsUsed, turnsUsed } = gpu;
    if (plan.fallsBack) [state, turnsUsed] = ['to_temporal', maskOf(0, tenantsOn(gpu))];
    for (const { slotStart, turn } of plan.places) {
      if (slotStart !== null) slotsUsed |= maskOf(slotStart, size);
      if (turn !== null) turnsUsed |= maskOf(turn, 1);
    }
    return { ...gpu, state, slotsUsed, turnsUsed };
  });
}

function fitsIn(
  gpus: readonly GpuRoom[],
  { isOnOneNode = false }: Wanted,
  rules: PlacingRules,
): { profile: string; count: number }[] {
  const nodes = nodesOf(gpus, isOnOneNode);
  return rules.sold
    .map((sold) => {
      const roomIn = (node: readonly GpuRoom[]) =>
        node.reduce((sum, gpu) => sum + Math.max(roomOn(gpu, sold, rules), roomByFallback(gpu, rules)), 0);
      return { profile: sold.name, count: Math.max(0, ...nodes.map(roomIn)) };
    })
    .filter(({ count }) => count > 0);
}
