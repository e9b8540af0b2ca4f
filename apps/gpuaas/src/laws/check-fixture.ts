import { expect } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { boardNamed } from '@atoll/gpu';
import type { UsageTold } from '@atoll/contracts/billing';
import type { World } from './world-fixture.js';

interface LeaseRow {
  lease_id: string;
  gpu_id: string;
  subscription_id: string;
  workload_id: string | null;
  profile: string;
  slot_start: number | null;
  slot_size: number;
  turn: number | null;
  lost_reason: string | null;
}

interface GpuRow {
  gpu_id: string;
  state: string;
  slots_used: string;
  turns_used: string;
  mechanism: string;
  temporal_replicas: number;
  device_mode: string | null;
}

/** What holds at every moment, whatever has happened. */
export async function checkLaws(world: World): Promise<void> {
  const gpus = await world.look<GpuRow>(
    `SELECT gpu_id, state, slots_used, turns_used, mechanism, temporal_replicas, simulated_device.mode AS device_mode
     FROM gpu JOIN pool USING (pool_id) LEFT JOIN simulated_device USING (uuid)`,
  );
  const leases = await world.look<LeaseRow>('SELECT * FROM lease ORDER BY lease_id');
  for (const gpu of gpus)
    checkGpu(
      gpu,
      leases.filter(({ gpu_id, lost_reason }) => gpu_id === gpu.gpu_id && lost_reason === null),
    );
  expect(await world.look(wrong)).toEqual([]);
  // Each sentence of a reason says something new.
  const reasons = await world.look<{ reason: string }>(
    `SELECT DISTINCT reason FROM machine_history WHERE reason IS NOT NULL
     UNION SELECT last_error->>'message' FROM workload WHERE last_error IS NOT NULL UNION SELECT last_error->>'message' FROM gpu WHERE last_error IS NOT NULL
     UNION SELECT last_error->>'message' FROM subscription WHERE last_error IS NOT NULL`,
  );
  for (const { reason } of reasons.filter((each) => !known.has(each.reason))) {
    expect([reason, repeated(reason)]).toEqual([reason, []]);
    known.add(reason);
  }
}

/** Reasons that have been looked at. */
const known = new Set<string>();

/**
 * What each holds, and what it is to hold: all of it, or nothing where it waits, or waited when it was left. `added`:
 * what a subscription that grows is to have besides.
 */
const heldBySubscriptions = `SELECT * FROM (
    SELECT subscription_id, state, vgpus, coalesce(resize_vgpus, vgpus) - vgpus AS more,
      (SELECT count(*) FROM lease WHERE lease.subscription_id = subscription.subscription_id AND NOT is_added) AS held,
      (SELECT count(*) FROM lease WHERE lease.subscription_id = subscription.subscription_id AND is_added) AS added,
      (SELECT count(*) FROM waiting_request WHERE waiting_request.subscription_id = subscription.subscription_id AND workload_id IS NULL) AS waits
    FROM subscription JOIN pool USING (pool_id) WHERE overcommit = 1
  ) held`;
const heldByWorkloads = `SELECT * FROM (
    SELECT workload_id, state, vgpus, 0 AS more, 0 AS added,
      (SELECT count(*) FROM lease WHERE lease.workload_id = workload.workload_id) AS held,
      (SELECT count(*) FROM waiting_request WHERE waiting_request.workload_id = workload.workload_id) AS waits
    FROM workload
  ) held`;
const isWhole = `CASE
    WHEN state IN ('subscribing', 'pending') THEN added = 0 AND (held, waits) IN ((vgpus, 0), (0, 1))
    WHEN state IN ('active', 'running') THEN (held, added, waits) = (vgpus, 0, 0)
    WHEN state = 'growing' THEN held = vgpus AND (added, waits) IN ((more, 0), (0, 1))
    WHEN state = 'reverting' THEN (held, waits) = (vgpus, 0) AND added <= more
    WHEN state IN ('unsubscribing', 'draining', 'undoing', 'stopping') THEN waits = 0 AND held IN (vgpus, 0)
    ELSE (held, added, waits) = (0, 0, 0) END`;

/** What must not be, each with what it is. */
const wrong = Object.entries({
  // No slot is lost: who holds one is alive, and holds as many as it was granted.
  'is held by one that has ended': `SELECT lease_id FROM lease JOIN subscription USING (subscription_id) LEFT JOIN workload USING (workload_id)
    WHERE subscription.state IN ('unsubscribed', 'failed') OR workload.state IN ('stopped', 'failed')`,
  'holds another number than it was granted': `${heldBySubscriptions} WHERE NOT ${isWhole}`,
  'occupies another number than it was granted': `${heldByWorkloads} WHERE NOT ${isWhole}`,
  // What is held is what metrics are read for.
  'is not what metrics are read for': `SELECT coalesce(lease.lease_id, held_slice.lease_id) AS lease_id
    FROM (SELECT * FROM lease WHERE NOT is_added AND lost_reason IS NULL) lease
    FULL JOIN (SELECT * FROM held_slice WHERE held_until IS NULL) held_slice USING (lease_id)
    WHERE (lease.subscription_id, lease.gpu_id, turn IS NULL, lease.gpu_instance_id)
      IS DISTINCT FROM (held_slice.subscription_id, held_slice.gpu_id, is_slot, held_slice.gpu_instance_id)`,
})
  .map(([what, rows]) => `SELECT '${what}' AS what, to_jsonb(found) AS found FROM (${rows}) found`)
  .join(' UNION ALL ');

function repeated(reason: string): string[] {
  const sentences = reason.split(/(?<=[.:])\s+/).map((sentence) => sentence.replace(/[.:]$/, ''));
  return sentences.filter((sentence, at) => sentences.indexOf(sentence) !== at);
}

function checkGpu(gpu: GpuRow, leases: readonly LeaseRow[]): void {
  const places = leases.flatMap(({ slot_start, slot_size }) =>
    slot_start === null ? [] : Array.from({ length: slot_size }, (_, at) => slot_start + at),
  );
  const turns = leases.flatMap(({ turn }) => turn ?? []);
  // Nothing is held twice, and what is written of it on the GPU is what the leases say.
  expect(new Set(places).size).toBe(places.length);
  expect(new Set(turns).size).toBe(turns.length);
  expect(BigInt(gpu.slots_used)).toBe(places.reduce((mask, slot) => mask | (1n << BigInt(slot)), 0n));
  expect(BigInt(gpu.turns_used)).toBe(turns.reduce((mask, turn) => mask | (1n << BigInt(turn)), 0n));
  expect(turns.every((turn) => turn < gpu.temporal_replicas)).toBe(true);
  for (const { profile, slot_start } of leases)
    if (slot_start !== null) expect(startsOf(profile)).toContain(slot_start);
  // Mode and leases agree; so do mode and device.
  const kinds = new Set(
    leases.map(({ slot_start, turn }) => `${slot_start === null ? '' : 'slots'}${turn === null ? '' : 'turn'}`),
  );
  expect([gpu.state, [...kinds].filter((kind) => !(allowed[gpu.state] ?? []).includes(kind))]).toEqual([gpu.state, []]);
  if (gpu.state === 'spatial') expect(gpu.device_mode).toBe('Spatial');
  if (gpu.state === 'temporal') expect(gpu.device_mode).toBe('Temporal');
  // MIG cannot be changed while a slice is leased.
  if (gpu.mechanism === 'mig' && gpu.state.endsWith('_temporal')) expect(places).toEqual([]);
}

const allowed: Record<string, string[]> = {
  spatial: ['slots'],
  to_temporal: ['slotsturn', 'turn'],
  doubting_temporal: ['slotsturn', 'turn'],
  temporal: ['turn'],
  to_spatial: ['slotsturn'],
  doubting_spatial: ['slotsturn'],
  preparing: ['slots', 'turn'],
  offline: ['slots', 'turn', 'slotsturn'],
};

function startsOf(profile: string): readonly number[] {
  return boardNamed('A100-80GB')?.migProfiles.find(({ name }) => name === profile)?.starts ?? [0, 1];
}

/** What holds once everything was given back: all capacity is there again, and what was told adds up. */
export async function checkEnd({ fixture, team, pools }: World): Promise<void> {
  expect(await fixture.query('SELECT * FROM lease')).toEqual([]);
  for (const { node_id } of pools.slice(0, 1)) {
    const { status, gpus } = await fixture.node(node_id);
    expect([status, gpus.map(({ mode, transition, origin }) => `${mode} ${transition} ${origin}`)]).toEqual([
      'ready',
      gpus.map(() => 'Spatial null configured'),
    ]);
  }
  expect(await fixture.query(`SELECT state FROM subscription WHERE state NOT IN ('unsubscribed', 'failed')`)).toEqual(
    [],
  );
  expect(await fixture.query(`SELECT state FROM workload WHERE state NOT IN ('stopped', 'failed')`)).toEqual([]);
  await eventually(async () => (await fixture.query('SELECT FROM outbox')).length === 0);
  const ever = await fixture.query<{ id: string; active_since: Date | null; entered_at: Date }>(
    'SELECT subscription_id AS id, active_since, entered_at FROM subscription',
  );
  for (const { id, active_since, entered_at } of ever) {
    const facts = fixture.events
      .filter(({ name }) => name === 'gpuaas.usage_told')
      .flatMap(({ payload }) => (payload as UsageTold).facts)
      .filter(({ resource_id }) => resource_id === `gpuaas_pool:${id}`)
      .sort((one, other) => (one.sequence ?? 0) - (other.sequence ?? 0));
    // Told of if and only if it ever was active: from that instant on, to that of its end, each change once.
    expect(facts[0]?.time).toBe(active_since?.toISOString());
    expect(facts.at(-1)?.time).toBe(active_since ? entered_at.toISOString() : undefined);
    expect(new Set(facts.map((fact) => fact.id)).size).toBe(facts.length);
    expect(facts.map(({ quantity }) => Number(quantity) > 0)).toEqual(facts.map((_, at) => at < facts.length - 1));
  }
  await checkTold(fixture.events, team.team_id, ever.length > 0);
}

async function checkTold(events: World['fixture']['events'], teamId: string, wasHeld: boolean): Promise<void> {
  if (!wasHeld) return;
  const told = () =>
    events
      .filter(
        ({ name, payload }) =>
          name === 'gpuaas.team_capacity_changed' && (payload as { team_id: string }).team_id === teamId,
      )
      .map(({ payload }) => payload as { revision: number; gpu_ids: number[]; has_pool_subscription: boolean })
      .sort((one, other) => one.revision - other.revision);
  await eventually(() => told().at(-1)?.has_pool_subscription === false);
  expect(told().at(-1)?.gpu_ids).toEqual([]);
}

async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(10);
}
