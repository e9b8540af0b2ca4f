import type { PodUsage, ReadPodUsage } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { seriesOf, MetricsSource, type MigInstance } from '../metrics/metrics-source.js';

interface PodSlice {
  no: number;
  gpuaas_id: string;
  gpu_uuid: string;
  /** Whether DCGM has figures of this slice alone. */
  is_own: boolean;
  instance_id: number | null;
}

/** Utilization of the GPU slices of pods. Tenants that share a GPU by time slicing or MPS cannot be distinguished. */
@Injectable()
export class PodUsageReader {
  constructor(
    private readonly statements: Statements,
    private readonly metrics: MetricsSource,
  ) {}

  /**
   * One statement and one query of the metrics' source for all of them, in their order. Never throws for what has no
   * figure.
   */
  async read({ pods, seconds }: ReadPodUsage): Promise<PodUsage[]> {
    const slices = await this.statements.query<PodSlice>(
      `SELECT no::integer, pool.gpuaas_id, gpu.uuid AS gpu_uuid, pool.mechanism = 'mig' AND lease.turn IS NULL AS is_own, lease.gpu_instance_id AS instance_id
       FROM unnest($1::uuid[], $2::integer[]) WITH ORDINALITY asked (pod_id, pod_start, no)
       JOIN workload USING (pod_id, pod_start) JOIN subscription USING (subscription_id) JOIN pool USING (pool_id)
       JOIN lease ON lease.workload_id = workload.workload_id JOIN gpu ON gpu.gpu_id = lease.gpu_id`,
      [pods.map(({ pod_id }) => pod_id), pods.map(({ start }) => start)],
    );
    const instances = slices.flatMap((slice) => {
      const instance = instanceOf(slice);
      return instance ? [{ ...instance, isIdle: pods[slice.no - 1]?.is_idle === true }] : [];
    });
    const peaks = instances.length > 0 ? await this.metrics.peaks(instances, seconds) : new Map<string, number>();
    const byPod = Map.groupBy(slices, ({ no }) => no);
    return pods.map(({ pod_id, start }, at) => ({ pod_id, start, ...usageOf(byPod.get(at + 1) ?? [], peaks) }));
  }
}

function instanceOf({ gpuaas_id, gpu_uuid, is_own, instance_id }: PodSlice): MigInstance | undefined {
  return is_own && instance_id !== null
    ? { gpuaasId: gpuaas_id, gpuUuid: gpu_uuid, gpuInstanceId: instance_id }
    : undefined;
}

function usageOf(
  slices: readonly PodSlice[],
  peaks: ReadonlyMap<string, number>,
): Pick<PodUsage, 'kind' | 'peak_percent'> {
  if (slices.some(({ is_own }) => !is_own)) return { kind: 'shared', peak_percent: null };
  const known = slices.flatMap((slice) => {
    const instance = instanceOf(slice);
    return instance ? (peaks.get(seriesOf(instance)) ?? []) : [];
  });
  if (known.length === 0 || known.length < slices.length) return { kind: 'no_data', peak_percent: null };
  // Upwards, so that no rounding makes a slice idle.
  return { kind: 'measured', peak_percent: Math.min(100, Math.ceil(Math.max(...known))) };
}
