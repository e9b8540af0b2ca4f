import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import {
  EndSubscription,
  gpuaasBatches,
  subscriptions,
  type MeteredSubscription,
  type Places,
} from '@atoll/contracts/gpuaas';
import { type PodOnSubscription } from '@atoll/contracts/pods';
import { type ImageObject } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { ConfigureRoute } from '../../http/route-config.js';
import { OldAnswers } from '../http/old-answers.js';
import { pageOrLast, placeInListing } from '../http/old-pages.js';
import { oldStatusOf } from './old-status.js';
import {
  OldSubscribe,
  OldSubscribed,
  OldSubscriptionPage,
  OldSubscriptionsQuery,
  windows,
  type OldDiscoveredService,
  type MountedVolume,
  type OldSubscription,
} from './old-subscriptions.js';
import { imagesOfTeam, podsOf, servicesOfPods } from './pods-of-team.js';
import { subscribe, unsubscribe } from './subscribing.js';

@ApiTags('GPU pools')
@Controller('gpuaas')
export class OldSubscriptionsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('pool-subscription')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(
    OldSubscriptionPage,
    'List the subscriptions of a team',
    'Those that have not ended, with their pods. Any member may read them.',
  )
  async listSubscriptions(
    @Query() query: OldSubscriptionsQuery,
    @Context() context: CallContext,
  ): Promise<OldSubscriptionPage> {
    const { team_id, page = 0, per_page = 10, metric_window = 'last_24h' } = query;
    const [{ data, pagination }, images] = await Promise.all([
      pageOrLast(
        (at, limit) =>
          this.rpc.call(
            subscriptions.list,
            { team_id, page: at + 1, limit, metric_window: windows[metric_window] },
            context,
          ),
        ({ subscription_id }) => subscription_id,
        { page, itemsPerPage: per_page },
      ),
      imagesOfTeam(this.rpc, team_id, context),
    ]);
    const around = data.length === 0 ? nothing : await this.around(team_id, data, context);
    return {
      items: data.map((subscription) => oldSubscription(subscription, { ...around, images })),
      ...placeInListing(pagination),
    };
  }

  @Post('pool/subscribe')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(
    OldSubscribed,
    'Subscribe to a pool',
    '409 where the team has a subscription to the pool that has not ended. Requires team_owner, team_admin or member.',
  )
  async subscribe(@Body() asked: OldSubscribe, @Context() context: CallContext): Promise<OldSubscribed> {
    return { subscription_id: Number(await subscribe(this.rpc, asked, context)) };
  }

  @Post('pool/unsubscribe')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(
    Nothing,
    'Unsubscribe from a pool',
    'Ends what runs on the subscription. Requires team_owner, team_admin or member.',
  )
  async unsubscribe(@Body() asked: EndSubscription, @Context() context: CallContext): Promise<Nothing> {
    await unsubscribe(this.rpc, asked, context);
    return {};
  }

  private async around(team_id: string, listed: readonly MeteredSubscription[], context: CallContext): Promise<Around> {
    const region_ids = [...new Set(listed.map(({ region_id }) => region_id))];
    const subscription_ids = listed.map(({ subscription_id }) => subscription_id);
    const [{ regions }, pods, servicesOf] = await Promise.all([
      this.rpc.call(gpuaasBatches.places, { region_ids }, context),
      podsOf(this.rpc, team_id, subscription_ids, context),
      servicesOfPods(this.rpc, { team_id }, context),
    ]);
    return { regions, podsOn: Map.groupBy(pods, ({ subscription_id }) => subscription_id), servicesOf };
  }
}

/** Where subscriptions are, and what runs on them. */
interface Around {
  regions: Places['regions'];
  podsOn: ReadonlyMap<string, PodOnSubscription[]>;
  servicesOf: ReadonlyMap<string, OldDiscoveredService[]>;
}

const nothing: Around = { regions: [], podsOn: new Map(), servicesOf: new Map() };

function oldSubscription(
  subscription: MeteredSubscription,
  { regions, podsOn, servicesOf, images }: Around & { images: readonly ImageObject[] },
): OldSubscription {
  const { subscription_id, pool_id, team_id, pool_name, vgpus_allocated, status, region_id, metrics } = subscription;
  const region = regions.find((one) => one.region_id === region_id);
  const pods = podsOn.get(subscription_id) ?? [];
  const [first] = pods;
  return {
    id: Number(subscription_id),
    pool_id: Number(pool_id),
    team_id,
    pool_name,
    gpu_count: vgpus_allocated,
    status: oldStatusOf(status),
    region: { region_name: region?.region_name ?? '', city: region?.city ?? '' },
    storage_details: { shared_volumes: mountedBy(pods) },
    pods: pods.map((pod) => ({
      pod_name: pod.pod_name,
      pod_status: pod.status,
      gpu_count: pod.vgpus,
      services: servicesOf.get(pod.pod_name) ?? [],
    })),
    per_pod_info: {
      vgpu_count: first?.vgpus ?? 1,
      image_name: first?.image ?? null,
      image_uuid: images.find(({ reference }) => reference === first?.image)?.id ?? null,
      vcpu_count: 0,
      ram_mb: 0,
    },
    metrics: { tflops_usage: 0, vram_usage: metrics.memory_usage },
  };
}

/** Each volume once. */
function mountedBy(pods: readonly PodOnSubscription[]): MountedVolume[] | null {
  const mounts = new Map(pods.flatMap(({ volumes }) => volumes.map(({ volume_id, path }) => [volume_id, path])));
  return mounts.size === 0 ? null : [...mounts].map(([id, mount_point]) => ({ id: Number(id), mount_point }));
}
