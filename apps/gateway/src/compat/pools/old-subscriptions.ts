import { IntersectionType } from '@nestjs/swagger';
import { NumberedId, OneOf, TeamPath, Uuid, WholeNumber } from '@atoll/contracts';
import { type MetricWindow } from '@atoll/contracts/gpuaas';
import { ShownInteger, ShownList, ShownNumber, ShownObject, ShownText } from '../http/old-answers.js';
import { PerPage, PlaceInListing } from '../http/old-pages.js';

/** The old windows, each with the nearest of the main API. */
export const windows = {
  last_5m: 'last_1h',
  last_15m: 'last_1h',
  last_1h: 'last_1h',
  last_24h: 'last_24h',
  last_7d: 'last_7d',
  all_time: 'last_30d',
} as const satisfies Record<string, MetricWindow>;

export class OldSubscriptionsQuery extends IntersectionType(TeamPath, PerPage) {
  @OneOf('OldMetricWindow', Object.keys(windows), {
    optional: true,
    description: 'Window of the metrics; last_24h if left out.',
  })
  metric_window?: keyof typeof windows;
}

export class OldSubscribe extends TeamPath {
  @NumberedId({ example: '1', description: 'Id of the pool.' })
  pool_id!: string;

  @WholeNumber({ min: 1, max: 10_000, example: 2, description: 'Number of vGPUs; 64 at most with an image.' })
  vgpus!: number;

  @Uuid({ optional: true, nullable: true, description: 'Id of the workspace; the default one if left out.' })
  workspace_id?: string | null;

  @Uuid({
    optional: true,
    nullable: true,
    description: 'Id of an image of the policy of the team: a pod of it is started for each vGPU.',
  })
  image_uuid?: string | null;
}

export class OldSubscribed {
  @ShownInteger('Id of the subscription.')
  subscription_id!: number;
}

class PlaceOfSubscription {
  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('City of the region.')
  city!: string;
}

export class MountedVolume {
  @ShownInteger('Id of the volume.')
  id!: number;

  @ShownText('Path in the pod, or in one of the pods, that mounts it.')
  mount_point!: string;
}

class MountedVolumes {
  @ShownList(() => MountedVolume, 'Shared volumes that pods on the subscription mount; null where there are none.', {
    nullable: true,
  })
  shared_volumes!: MountedVolume[] | null;
}

export class OldDiscoveredService {
  @ShownInteger('Id of the exposed service.')
  id!: number;

  @ShownText('Name of the service.')
  service_name!: string;

  @ShownText('Public host.')
  ip!: string;

  @ShownInteger('Port on which the pod listens.')
  internal_port!: number;

  @ShownInteger('Port on the public host.')
  port!: number;

  @ShownInteger('Port on the public host.')
  node_port!: number;

  @ShownText('Protocol that the pod speaks.', { example: 'HTTP' })
  protocol!: string;

  @ShownText('Type of the service: http, https or NodePort.', { example: 'http' })
  service_type!: string;

  @ShownText('State of the service.', { example: 'active' })
  status!: string;

  @ShownText('Name of the service once more.')
  name!: string;

  @ShownText('Address of the service.')
  url!: string;
}

export class OldSubscriptionPod {
  @ShownText('Name of the pod.')
  pod_name!: string;

  @ShownText('Status of the pod.', { example: 'running' })
  pod_status!: string;

  @ShownInteger('Number of its vGPUs.')
  gpu_count!: number;

  @ShownList(() => OldDiscoveredService, 'Exposed services of the pod.')
  services!: OldDiscoveredService[];
}

class PerPodInfo {
  @ShownInteger('vGPUs of a pod.')
  vgpu_count!: number;

  @ShownText('Reference of the image; null without pods.', { nullable: true })
  image_name!: string | null;

  @ShownText('Id of the image in the policy of the team; null where it is not there.', { nullable: true })
  image_uuid!: string | null;

  @ShownInteger('Cores: not known.')
  vcpu_count!: number;

  @ShownInteger('Memory in MB: not known.')
  ram_mb!: number;
}

class OldMetrics {
  @ShownNumber('Not known: 0.')
  tflops_usage!: number;

  @ShownNumber('Share of the GPU memory that is in use, in percent.')
  vram_usage!: number;
}

export class OldSubscription {
  @ShownInteger('Id of the subscription.')
  id!: number;

  @ShownInteger('Id of the pool.')
  pool_id!: number;

  @ShownText('Id of the team.')
  team_id!: string;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownInteger('Number of vGPUs.')
  gpu_count!: number;

  @ShownText('Status: subscribing, subscribed, un_subscribing.', { example: 'subscribed' })
  status!: string;

  @ShownObject(() => PlaceOfSubscription, 'Region of the pool.')
  region!: PlaceOfSubscription;

  @ShownObject(() => MountedVolumes, 'Volumes of its pods.')
  storage_details!: MountedVolumes;

  @ShownList(() => OldSubscriptionPod, 'Pods on the subscription.')
  pods!: OldSubscriptionPod[];

  @ShownObject(() => PerPodInfo, 'Resources of each pod.')
  per_pod_info!: PerPodInfo;

  @ShownObject(() => OldMetrics, 'Averages over the window.')
  metrics!: OldMetrics;
}

export class OldSubscriptionPage extends PlaceInListing {
  @ShownList(() => OldSubscription, 'Subscriptions of the page; those that have ended are not listed.')
  items!: OldSubscription[];
}
