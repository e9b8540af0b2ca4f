import { isMigInstance, type Figure } from './averages.js';
import type { MeasuredSubscription } from './metrics-source.js';

export interface PageQuery {
  readonly expression: string;
  /** How many series it can answer at most. */
  readonly seriesAtMost: number;
}

/** Tells the figures of one answer apart. */
export const figureLabel = 'atoll_figure';
export const subscriptionLabel = 'atoll_subscription_id';
const cpuShare = 'atoll_subscription:cpu_usage:ratio_rate5m';

/**
 * One PromQL expression for all figures of the subscriptions, each in percent and named by the label `atoll_figure`. Exporters that name
 * pods, and scrapers that run twice, show a device several times: hence the averages, which also make the labels match.
 */
export function pageQuery(subscriptions: readonly MeasuredSubscription[]): PageQuery {
  const slices = subscriptions.flatMap((subscription) => subscription.slices);
  const devices = unique(slices.filter((slice) => !isMigInstance(slice)).map(({ gpuUuid }) => gpuUuid));
  const instances = slices.filter((slice) => isMigInstance(slice) && slice.gpuInstanceId !== null);
  const cutGpus = unique(instances.map(({ gpuUuid }) => gpuUuid));
  const instanceIds = unique(instances.map(({ gpuInstanceId }) => String(gpuInstanceId)));
  const ids = unique(subscriptions.map(({ subscriptionId }) => subscriptionId));

  const parts = [named('cpu_usage', `100 * avg by (${subscriptionLabel}) (${cpuShare}{${subscriptionLabel}=~${anyOf(ids)}})`)];
  if (devices.length > 0) {
    const device = `{UUID=~${anyOf(devices)},GPU_I_ID=""}`;
    parts.push(named('gpu_utilization', bySlice(`DCGM_FI_DEV_GPU_UTIL${device}`)), named('memory_usage', memoryShare(device)));
  }
  if (cutGpus.length > 0) {
    // More than was asked for where GPUs have instances of the same ids; who reads the answer picks.
    const instance = `{UUID=~${anyOf(cutGpus)},GPU_I_ID=~${anyOf(instanceIds)}}`;
    parts.push(named('gpu_utilization', `100 * ${bySlice(`DCGM_FI_PROF_GR_ENGINE_ACTIVE${instance}`)}`));
    parts.push(named('memory_usage', memoryShare(instance)));
  }
  return { expression: parts.join(' or '), seriesAtMost: ids.length + 2 * (devices.length + cutGpus.length * instanceIds.length) };
}

function named(figure: Figure, expression: string): string {
  return `label_replace(${expression}, "${figureLabel}", "${figure}", "", "")`;
}

function bySlice(selector: string): string {
  return `avg by (UUID, GPU_I_ID) (${selector})`;
}

function memoryShare(labels: string): string {
  const used = bySlice(`DCGM_FI_DEV_FB_USED${labels}`);
  return `100 * ${used} / (${used} + ${bySlice(`DCGM_FI_DEV_FB_FREE${labels}`)})`;
}

/** A PromQL string that matches each of the values and nothing else. JSON's escapes are among those of Go, which PromQL has. */
function anyOf(values: readonly string[]): string {
  return JSON.stringify(values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'));
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
