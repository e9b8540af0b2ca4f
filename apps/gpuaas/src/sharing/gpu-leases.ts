import { maskOf, place, placeAll, type SliceProfile } from '@atoll/gpu';
import type { EntityManager } from 'typeorm';
import { leasesOn, loseLeases, movePlaces, type PlacedLease } from './lease-store.js';
import { turnsFrom } from './plan.js';

/**
 * What becomes of the leases of a GPU when its mode changes. In each the rows of the GPUs are locked by the
 * transaction.
 *
 * At rest in Spatial a lease has slots alone, at rest in Temporal a turn alone; while the GPU switches, both for whom
 * there is a place in either.
 */

/** Before GPUs fall back: each lease on them gets a turn. */
export async function giveTurns(manager: EntityManager, gpuIds: readonly string[]): Promise<void> {
  const leases = [...(await leasesOn(manager, gpuIds)).values()];
  await movePlaces(
    manager,
    leases.flatMap((on) => on.map((lease, turn) => ({ ...lease, turn }))),
  );
}

/**
 * Before GPUs of one pool return: each lease on them gets slots. Returns the ids of the GPUs whose leases all fit; the
 * leases on the others keep their places.
 */
export async function giveSlots(
  manager: EntityManager,
  gpuIds: readonly string[],
  profiles: readonly SliceProfile[],
): Promise<Set<string>> {
  const leases = await leasesOn(manager, gpuIds);
  const fitting = new Map(
    gpuIds.flatMap((gpuId) => {
      const on = leases.get(gpuId) ?? [];
      const starts = placeAll(
        on.map(({ profile }) => profileNamed(profiles, profile)),
        0n,
      );
      return starts ? [[gpuId, on.map((lease, at) => ({ ...lease, slotStart: starts[at] ?? null }))] as const] : [];
    }),
  );
  await movePlaces(manager, [...fitting.values()].flat());
  return new Set(fitting.keys());
}

/** A GPU is in Temporal: turns alone. */
export async function settleInTemporal(manager: EntityManager, gpuId: string): Promise<void> {
  const leases = await leasesOnOne(manager, gpuId);
  const moved = leases.map((lease) => ({ ...lease, slotStart: null }));
  await movePlaces(manager, withTurns(moved));
}

/**
 * A GPU is in Spatial mode, with slots only. A request for a turn gets slots if any are left, and otherwise the reason.
 */
export async function settleInSpatial(
  manager: EntityManager,
  gpuId: string,
  profiles: readonly SliceProfile[],
  reason: string,
): Promise<void> {
  const leases = await leasesOnOne(manager, gpuId);
  const placed = leases.filter(({ slotStart }) => slotStart !== null);
  let used = placed.reduce((mask, lease) => mask | bitsOf(lease), 0n);
  const lost: string[] = [];
  for (const lease of leases.filter(({ slotStart }) => slotStart === null)) {
    const [start] = place(profileNamed(profiles, lease.profile), 1, used, profiles) ?? [];
    if (start === undefined) lost.push(lease.leaseId);
    else {
      placed.push({ ...lease, slotStart: start });
      used |= bitsOf({ ...lease, slotStart: start });
    }
  }
  await loseLeases(manager, gpuId, lost, reason);
  await movePlaces(
    manager,
    placed.map((lease) => ({ ...lease, turn: null })),
  );
}

/**
 * A GPU was lost while switching: requests for the new mode get this as their reason, other holders keep their places.
 */
export async function settleOffline(manager: EntityManager, gpuId: string, reason: string): Promise<void> {
  const leases = await leasesOnOne(manager, gpuId);
  const newcomers = leases.filter(({ slotStart }) => slotStart === null).map(({ leaseId }) => leaseId);
  await loseLeases(manager, gpuId, newcomers, reason);
  const rest = leases.filter(({ slotStart }) => slotStart !== null).map((lease) => ({ ...lease, turn: null }));
  await movePlaces(manager, rest);
}

async function leasesOnOne(manager: EntityManager, gpuId: string): Promise<PlacedLease[]> {
  return (await leasesOn(manager, [gpuId])).get(gpuId) ?? [];
}

function withTurns(leases: PlacedLease[]): PlacedLease[] {
  const used = leases.reduce((mask, { turn }) => (turn === null ? mask : mask | (1n << BigInt(turn))), 0n);
  const without = leases.filter(({ turn }) => turn === null);
  const free = turnsFrom(used, without.length);
  without.forEach((lease, at) => (lease.turn = free[at]?.turn ?? null));
  return leases;
}

function bitsOf({ slotStart, slotSize }: PlacedLease): bigint {
  return slotStart === null ? 0n : maskOf(slotStart, slotSize);
}

function profileNamed(profiles: readonly SliceProfile[], name: string): SliceProfile {
  const profile = profiles.find((candidate) => candidate.name === name);
  if (!profile) throw new Error(`The pool does not sell ${name}.`);
  return profile;
}
