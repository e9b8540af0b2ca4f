import type { ClusterDriver, Exit, RunSight } from '@atoll/cluster';

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

type OverRun = { exit: Exit | null } | undefined;

/** Requests the end of a run. Its exit where it is over, null where the cluster does not know that. */
export async function stopRun(
  driver: ClusterDriver,
  ref: RunOf,
  graceMs: number,
  signal: AbortSignal,
): Promise<OverRun> {
  await (ref.kind === 'pod' ? driver.stopPod(ref, graceMs, signal) : driver.stopVm(ref, graceMs, signal));
  return overRun(await observeRun(driver, ref, signal));
}

/** As `stopRun`, which it does where the run is not over yet. */
export async function endRun(
  driver: ClusterDriver,
  ref: RunOf,
  graceMs: number,
  signal: AbortSignal,
): Promise<OverRun> {
  return overRun(await observeRun(driver, ref, signal)) ?? stopRun(driver, ref, graceMs, signal);
}

function overRun(sight: RunSight): OverRun {
  if (sight.phase === 'ended') return { exit: sight.exit };
  return sight.phase === 'absent' ? { exit: null } : undefined;
}
