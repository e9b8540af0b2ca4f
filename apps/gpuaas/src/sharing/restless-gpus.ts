import type { EntityManager } from 'typeorm';
import type { GpuaasSettings } from '../gpuaas-settings.js';

/** A fallback and its return are four transitions, if both succeed. */
const transitionsOfCycle = 4;

/**
 * Those of these GPUs, which the transaction has locked, that somebody has a part of and that have begun to return to
 * Spatial as often of late as they may. A tenant that asks for a turn and gives it back, again and again, would
 * otherwise switch the GPU under all others each time, at no cost.
 */
export async function restlessAmong(
  manager: EntityManager,
  gpuIds: readonly string[],
  { mostReturns, returnsWithinMs }: GpuaasSettings,
): Promise<Set<string>> {
  if (gpuIds.length === 0) return new Set();
  const restless = await manager.query<{ gpu_id: string }[]>(
    `SELECT gpu_id FROM gpu WHERE gpu_id = ANY ($1::bigint[]) AND turns_used <> 0 AND $3::int <= (
       SELECT count(*) FROM (
         SELECT event, at FROM machine_history WHERE machine = 'gpu' AND instance = gpu.gpu_id::text
         ORDER BY id DESC LIMIT $3::int * ${transitionsOfCycle}
       ) latest WHERE event = 'RETURN' AND at > clock_timestamp() - $2 * interval '1 millisecond'
     )`,
    [gpuIds, returnsWithinMs, mostReturns],
  );
  return new Set(restless.map(({ gpu_id }) => gpu_id));
}
