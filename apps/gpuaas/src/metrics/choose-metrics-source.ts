import type { Statements } from '@atoll/database';
import type { MetricsSource } from './metrics-source.js';
import { PrometheusMetrics } from './prometheus-metrics.js';
import { SimulatedMetrics } from './simulated-metrics.js';

/**
 * Prometheus if the deployment has one; otherwise simulated figures for simulated clusters, and none for others. Throws
 * for an invalid address.
 */
export function metricsSource(
  { prometheusUrl }: { readonly prometheusUrl?: string | undefined },
  statements: Pick<Statements, 'query'>,
): MetricsSource {
  if (prometheusUrl) return new PrometheusMetrics({ url: prometheusUrl });
  return new SimulatedMetrics(async (gpuaasIds) => {
    const rows = await statements.query<{ gpuaas_id: string }>(
      `SELECT gpuaas_id FROM cluster WHERE gpuaas_id = ANY ($1::bigint[]) AND driver = 'simulated'`,
      [gpuaasIds],
    );
    return new Set(rows.map(({ gpuaas_id }) => gpuaas_id));
  });
}
