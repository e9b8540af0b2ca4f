import { expect } from '@jest/globals';
import { boardNamed } from '@atoll/gpu';
import type { UsageTold } from '@atoll/contracts';
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
export async function checkLaws({ fixture }: World): Promise<void> {
  const gpus = await fixture.query<GpuRow>(
    `SELECT gpu_id, state, slots_used, turns_used, mechanism, temporal_replicas, simulated_device.mode AS device_mode
     FROM gpu JOIN pool USING (pool_id) LEFT JOIN simulated_device USING (uuid)`,
  );
  const leases = await fixture.query<LeaseRow>('SELECT * FROM lease ORDER BY lease_id');
  for (const gpu of gpus)
    checkGpu(
      gpu,
      leases.filter(({ gpu_id, lost_reason }) => gpu_id === gpu.gpu_id && lost_reason === null),
    );
  // No slot is lost: who holds one is alive, and holds as many as it was granted.
  expect(
    await fixture.query(
      `SELECT lease_id FROM lease JOIN subscription USING (subscription_id) LEFT JOIN workload USING (workload_id)
       WHERE subscription.state IN ('unsubscribed', 'failed') OR workload.state IN ('stopped', 'failed')`,
    ),
  ).toEqual([]);
  expect(
    await fixture.query(
      `SELECT subscription_id, vgpus, count(lease_id) FROM subscription JOIN pool USING (pool_id) LEFT JOIN lease USING (subscription_id)
       WHERE overcommit = 1 AND state IN ('subscribing', 'active', 'unsubscribing', 'undoing') GROUP BY subscription_id HAVING count(lease_id) <> vgpus`,
    ),
  ).toEqual([]);
  expect(
    await fixture.query(
      `SELECT workload_id, vgpus, count(lease_id) FROM workload LEFT JOIN lease USING (workload_id)
       WHERE state IN ('pending', 'running', 'stopping', 'undoing') GROUP BY workload_id HAVING count(lease_id) <> vgpus`,
    ),
  ).toEqual([]);
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
  for (const { profile, slot_start } of leases) if (slot_start !== null) expect(startsOf(profile)).toContain(slot_start);
  // Mode and leases agree; so do mode and device.
  const kinds = new Set(leases.map(({ slot_start, turn }) => `${slot_start === null ? '' : 'slots'}${turn === null ? '' : 'turn'}`));
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
  expect(await fixture.query(`SELECT state FROM subscription WHERE state NOT IN ('unsubscribed', 'failed')`)).toEqual([]);
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
      .filter(({ name, payload }) => name === 'gpuaas.team_capacity_changed' && (payload as { team_id: string }).team_id === teamId)
      .map(({ payload }) => payload as { revision: number; gpu_ids: number[]; has_pool_subscription: boolean })
      .sort((one, other) => one.revision - other.revision);
  await eventually(() => told().at(-1)?.has_pool_subscription === false);
  expect(told().at(-1)?.gpu_ids).toEqual([]);
}

async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
