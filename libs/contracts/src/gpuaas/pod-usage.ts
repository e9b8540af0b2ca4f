import { contract, operation } from '../contract.js';
import { Flag, ListOf, OneOf, WholeNumber } from '../fields.js';
import { PodStart } from './pod-workload.js';

export const maxPodsPerReading = 500;

class AskedPod extends PodStart {
  @Flag({
    optional: true,
    description: 'Whether the pod is simulated and idle: simulated figures follow it, measured ones ignore it.',
  })
  is_idle?: boolean;
}

export class ReadPodUsage {
  @WholeNumber({ min: 15, max: 3_600, description: 'Seconds up to now.' })
  seconds!: number;

  @ListOf(() => AskedPod, { max: maxPodsPerReading })
  pods!: AskedPod[];
}

const podUsageKinds = ['measured', 'no_data', 'shared'] as const;

export class PodUsage extends PodStart {
  @OneOf('PodUsageKind', podUsageKinds, {
    description:
      '`measured`: each slice of the pod has a figure of its own; `shared`: a slice has only that of the whole GPU; `no_data`: a figure is missing.',
  })
  kind!: (typeof podUsageKinds)[number];

  @WholeNumber({
    min: 0,
    max: 100,
    nullable: true,
    description: 'Percent, the greatest sample of any slice, rounded up; null unless `measured`.',
  })
  peak_percent!: number | null;
}

export class PodUsages {
  @ListOf(() => PodUsage, { max: maxPodsPerReading, description: 'In the order of the request.' })
  data!: PodUsage[];
}

/** For the pods service: how much of their GPU slices pods have used. */
export const podUsages = contract('gpuaas.pod_usage', {
  read: operation(ReadPodUsage, PodUsages),
});
