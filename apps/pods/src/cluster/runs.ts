import type { ClusterDriver, Exit, RunSight } from '@atoll/cluster';
import type { StepContext } from '@atoll/state-machine';
import { untilAborted } from '@atoll/waiting';
import type { EntityManager } from 'typeorm';
import type { GivenUpEndEntity } from '../model/given-up-end.entity.js';
import type { RunRow } from '../model/run-row.js';

/** Well within the time of a step. */
const soonMs = 4_000;

/** A run of a pod or of a VM. */
export interface RunOf {
  readonly kind: 'pod' | 'vm';
  readonly id: string;
  readonly run: number;
}

/** The run as its cluster shows it. */
export async function observeRun(driver: ClusterDriver, ref: RunOf, signal: AbortSignal): Promise<RunSight> {
  const [sight] = await (ref.kind === 'pod' ? driver.observePods([ref], signal) : driver.observeVms([ref], signal));
  if (!sight) throw new Error('The driver returned no result.');
  return sight;
}

/** Undefined: it is not over. */
export type OverRun = { readonly exit: Exit | null } | undefined;

/** Requests the end of a run. Its exit where it is over, null where the cluster does not know that. */
export async function stopRun(
  driver: ClusterDriver,
  ref: RunOf,
  graceMs: number,
  context: StepContext,
): Promise<OverRun> {
  await (ref.kind === 'pod'
    ? driver.stopPod(ref, graceMs, context.signal)
    : driver.stopVm(ref, graceMs, context.signal));
  return overRun(await observeRun(driver, ref, context.signal));
}

/** As `stopRun`, which it does where the run is not over yet. */
export async function endRun(
  driver: ClusterDriver,
  ref: RunOf,
  graceMs: number,
  context: StepContext,
): Promise<OverRun> {
  return overRun(await observeRun(driver, ref, context.signal)) ?? stopRun(driver, ref, graceMs, context);
}

/**
 * Whether a run is seen to be over. False where its cluster does not say so soon, for whatever reason. Throws only
 * where the signal is aborted.
 */
export async function isSeenOver(
  driver: () => Promise<ClusterDriver>,
  ref: RunOf,
  signal: AbortSignal,
): Promise<boolean> {
  const soon = AbortSignal.any([signal, AbortSignal.timeout(soonMs)]);
  const look = async () => overRun(await observeRun(await driver(), ref, soon)) !== undefined;
  try {
    return await untilAborted(soon, look());
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

export type OutstandingEnd = RunOf & Pick<GivenUpEndEntity, 'start'>;

/** Within the transaction in which a row gives up its end: what is outstanding on the cluster and at gpuaas. */
export async function recordOutstandingEnd(
  manager: EntityManager,
  { gpuaasId, teamId }: RunRow,
  { kind, id, run, start }: OutstandingEnd,
): Promise<void> {
  await manager.query(
    'INSERT INTO given_up_end (kind, id, run, start, gpuaas_id, team_id) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING',
    [kind, id, run, start, gpuaasId, teamId],
  );
}

function overRun(sight: RunSight): OverRun {
  if (sight.phase === 'ended') return { exit: sight.exit };
  return sight.phase === 'absent' ? { exit: null } : undefined;
}
