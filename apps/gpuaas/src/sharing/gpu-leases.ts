import { place, placeAll, type SliceProfile } from '@atoll/gpu';
import type { EntityManager } from 'typeorm';
import type { LeaseEntity } from '../model/lease.entity.js';
import { leasesOn, loseLeases, movePlaces } from './lease-store.js';
import { turnsFrom } from './plan.js';

/**
 * What becomes of the leases of a GPU when its mode changes. In each the GPU's row is locked by the transaction.
 *
 * At rest in Spatial a lease has slots alone, at rest in Temporal a turn alone; while the GPU switches, both for whom
 * there is a place in either.
 */

/** Before a GPU falls back: whoever is on it gets a turn. Returns how many turns are taken. */
export async function giveTurns(manager: EntityManager, gpuId: string): Promise<number> {
  const leases = await leasesOn(manager, gpuId);
  await movePlaces(
    manager,
    gpuId,
    leases.map((lease, turn) => ({ ...lease, turn })),
  );
  return leases.length;
}

/** Before a GPU returns: whoever is on it gets slots. False, and nothing is changed, if they do not all fit. */
export async function giveSlots(
  manager: EntityManager,
  gpuId: string,
  profiles: readonly SliceProfile[],
): Promise<boolean> {
  const leases = await leasesOn(manager, gpuId);
  const starts = placeAll(
    leases.map(({ profile }) => profileNamed(profiles, profile)),
    0n,
  );
  if (!starts) return false;
  await movePlaces(
    manager,
    gpuId,
    leases.map((lease, at) => ({ ...lease, slotStart: starts[at] ?? null })),
  );
  return true;
}

/** A GPU is in Temporal: turns alone. */
export async function settleInTemporal(manager: EntityManager, gpuId: string): Promise<void> {
  const leases = await leasesOn(manager, gpuId);
  const moved = leases.map((lease) => ({ ...lease, slotStart: null }));
  await movePlaces(manager, gpuId, withTurns(moved));
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
  const leases = await leasesOn(manager, gpuId);
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
    gpuId,
    placed.map((lease) => ({ ...lease, turn: null })),
  );
}

/**
 * A GPU was lost while switching: requests for the new mode get this as their reason, other holders keep their places.
 */
export async function settleOffline(manager: EntityManager, gpuId: string, reason: string): Promise<void> {
  const leases = await leasesOn(manager, gpuId);
  const newcomers = leases.filter(({ slotStart }) => slotStart === null).map(({ leaseId }) => leaseId);
  await loseLeases(manager, gpuId, newcomers, reason);
  const rest = leases.filter(({ slotStart }) => slotStart !== null).map((lease) => ({ ...lease, turn: null }));
  await movePlaces(manager, gpuId, rest);
}

function withTurns(leases: LeaseEntity[]): LeaseEntity[] {
  const used = leases.reduce((mask, { turn }) => (turn === null ? mask : mask | (1n << BigInt(turn))), 0n);
  const without = leases.filter(({ turn }) => turn === null);
  const free = turnsFrom(used, without.length);
  without.forEach((lease, at) => (lease.turn = free[at]?.turn ?? null));
  return leases;
}

function bitsOf({ slotStart, slotSize }: Pick<LeaseEntity, 'slotStart' | 'slotSize'>): bigint {
  return slotStart === null ? 0n : ((1n << BigInt(slotSize)) - 1n) << BigInt(slotStart);
}

function profileNamed(profiles: readonly SliceProfile[], name: string): SliceProfile {
  const profile = profiles.find((candidate) => candidate.name === name);
  if (!profile) throw new Error(`The pool does not sell ${name}.`);
  return profile;
}
