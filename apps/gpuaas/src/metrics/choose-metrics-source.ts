import type { MetricsSource } from './metrics-source.js';
import { PrometheusMetrics } from './prometheus-metrics.js';
import { SimulatedMetrics } from './simulated-metrics.js';

/** Prometheus where the deployment has one, else figures that are made up as the GPUs are. Throws for an address that is none. */
export function metricsSource({ prometheusUrl }: { readonly prometheusUrl?: string | undefined }): MetricsSource {
  return prometheusUrl ? new PrometheusMetrics({ url: prometheusUrl }) : new SimulatedMetrics();
}
