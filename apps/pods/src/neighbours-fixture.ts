import { type Operation } from '@atoll/contracts';
import {
  clusters,
  gpuaasBatches,
  gpuServices,
  podUsages,
  podWorkloads,
  type CheckPodWorkload,
  type ClusterChanged,
  type GpuaasPath,
  type LeasedSlice,
  type PodStart,
  type PodSubscription,
  type PodUsage,
  type PodWorkload,
  type ReadPodUsage,
  type StartPodWorkload,
  type Subscription,
} from '@atoll/contracts/gpuaas';
import { imagePolicies, type CheckImage } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { AppError, isAppError } from '@atoll/errors';
import type { InProcessBus } from '@atoll/rpc';

interface KnownSubscription extends PodSubscription {
  isActive: boolean;
}

/** The gpuaas service, and what teams says of images, as the pods service meets them. */
export class Neighbours {
  readonly subscriptions = new Map<string, KnownSubscription>();
  readonly workloads = new Map<
    string,
    PodWorkload & { subscriptionId: string; vgpus: number; requestedBy: string | undefined }
  >();
  /** Clusters that an operator has set. All others are simulated. */
  readonly clusters = new Map<string, Partial<ClusterChanged>>();
  /** How much a pod uses its GPU. */
  usage: (pod: ReadPodUsage['pods'][number]) => Pick<PodUsage, 'kind' | 'peak_percent'> = () => ({
    kind: 'no_data',
    peak_percent: null,
  });
  /** References that no policy allows. */
  readonly forbiddenImages = new Set<string>();
  /** Subjects in the order in which they were asked for. */
  readonly asked: string[] = [];
  /** How far the workload of a pod is when it is asked for first. */
  startsAs: Pick<PodWorkload, 'status' | 'reason'> = { status: 'running', reason: null };
  /** Instead of what would be answered: for a neighbour that is away, or hangs. */
  failing: AppError | undefined;
  private last = 0;

  constructor(bus: InProcessBus) {
    const serve = <I extends object, O extends object>({ subject }: Operation<I, O>, answer: (input: I) => O) =>
      bus.serve(subject, ({ payload }, respond) => {
        this.asked.push(subject);
        try {
          if (this.failing) throw this.failing;
          respond({ json: JSON.stringify(answer(JSON.parse(payload) as I)) });
        } catch (error) {
          respond({ error: isAppError(error) ? error : new AppError('internal', String(error)) });
        }
      });
    serve(podWorkloads.check, (input) => this.check(input));
    serve(gpuaasBatches.subscriptions, ({ team_id, subscription_ids }) => ({
      data: subscription_ids
        .flatMap((id) => this.subscriptions.get(id) ?? [])
        .filter((found) => found.team_id === team_id)
        .map(viewOf),
    }));
    serve(podWorkloads.start, (input) => this.start(input));
    serve(podWorkloads.end, (input) => this.end(input));
    serve(clusters.lookUp, (input) => {
      if (input.gpuaas_id === '999999999') throw new AppError('not_found', 'No such gpuaas.');
      return this.cluster(input);
    });
    serve(gpuServices.find, ({ region_id, gpuaas_id = region_id }) => {
      if (region_id !== '1' && region_id !== '2') throw new AppError('not_found', 'No such region.');
      return { region_id, gpuaas_id, region_name: region_id === '1' ? 'eu-north' : 'eu-south' };
    });
    serve(podUsages.read, ({ pods }) => ({
      data: pods.map((pod) => ({ pod_id: pod.pod_id, start: pod.start, ...this.usage(pod) })),
    }));
    serve(imagePolicies.check, (input) => this.verdict(input));
  }

  subscription(
    teamId: string,
    workspaceId: string,
    vgpus = 4,
    more: Partial<KnownSubscription> = {},
  ): KnownSubscription {
    const subscription: KnownSubscription = {
      subscription_id: String((this.last += 1)),
      team_id: teamId,
      workspace_id: workspaceId,
      gpuaas_id: '1',
      region_id: '1',
      region_name: 'eu-north',
      profile: '1g.10gb',
      refusal: null,
      vgpus,
      vgpus_beside_pods: 0,
      isActive: true,
      ...more,
    };
    this.subscriptions.set(subscription.subscription_id, subscription);
    return subscription;
  }

  /** The workload of a pod's start. */
  workload(podId: string, start = 1): PodWorkload | undefined {
    return this.workloads.get(`${podId} ${start}`);
  }

  /** The cluster of a GPU service, as the gpuaas service tells of it. */
  cluster({ gpuaas_id }: GpuaasPath): ClusterChanged {
    const none = { socket: null, url: null, door_image: null, sealed_tls: null };
    const simulated = {
      gpuaas_id,
      driver: 'simulated' as const,
      public_host: '127.0.0.1',
      ...none,
      is_unreachable: false,
    };
    return { ...simulated, setting: 1, revision: 1, ...this.clusters.get(gpuaas_id) };
  }

  private check({ subscription_id, vgpus, team_id }: CheckPodWorkload): PodSubscription {
    const { isActive: _isActive, ...found } = this.require(subscription_id);
    if (team_id !== found.team_id) throw new AppError('not_found', 'No such subscription.');
    const { vgpus: held } = found;
    const used = this.used(subscription_id);
    const message = `The subscription has ${held} vGPUs, of which ${used} are in use. What would fit: ${held - used}.`;
    return {
      ...found,
      refusal: found.refusal ?? (used + vgpus > held ? { code: 'insufficient_capacity', message } : null),
    };
  }

  private start({ pod_id, start, subscription_id, vgpus, requested_by }: StartPodWorkload): PodWorkload {
    const key = `${pod_id} ${start}`;
    const known = this.workloads.get(key);
    if (known) return answerOf(known);
    const { vgpus: held, isActive } = this.require(subscription_id);
    if (!isActive)
      return {
        pod_id,
        start,
        workload_id: null,
        status: 'waiting',
        reason: 'Waiting for its subscription.',
        slices: [],
        cluster_setting: 0,
      };
    if (this.used(subscription_id) + vgpus > held)
      throw new AppError('insufficient_capacity', 'The subscription is full.');
    const slices = Array.from({ length: vgpus }, (_, at) => this.slice(at));
    const workload = {
      pod_id,
      start,
      workload_id: String((this.last += 1)),
      ...this.startsAs,
      slices,
      cluster_setting: this.settingOf(subscription_id),
    };
    this.workloads.set(key, { ...workload, subscriptionId: subscription_id, vgpus, requestedBy: requested_by });
    return workload;
  }

  private end({ pod_id, start }: PodStart): object {
    const known = this.workloads.get(`${pod_id} ${start}`);
    if (known) known.status = 'stopped';
    return {};
  }

  private verdict({ image }: CheckImage): { allowed: boolean; reference: string } {
    if (/[^a-z0-9./:@_-]/.test(image)) throw new AppError('invalid_input', 'image must be an image reference.');
    const reference = image.includes('/') ? image : `docker.io/library/${image}`;
    return { allowed: !this.forbiddenImages.has(image), reference };
  }

  private used(subscriptionId: string): number {
    return [...this.workloads.values()]
      .filter((workload) => workload.subscriptionId === subscriptionId && workload.status === 'running')
      .reduce((sum, { vgpus }) => sum + vgpus, this.require(subscriptionId).vgpus_beside_pods);
  }

  private settingOf(subscriptionId: string): number {
    return this.cluster(this.require(subscriptionId)).setting;
  }

  private require(id: string): KnownSubscription {
    const found = this.subscriptions.get(id);
    if (!found) throw new AppError('not_found', 'No such subscription.');
    return found;
  }

  private slice(at: number): LeasedSlice {
    return {
      lease_id: String((this.last += 1)),
      node_name: 'gpu-01',
      gpu_uuid: `GPU-${newId()}`,
      board: 'A100-80GB',
      profile: '1g.10gb',
      slot_start: at,
      instance_id: null,
      is_simulated: true,
    };
  }
}

function answerOf({ pod_id, start, workload_id, status, reason, slices, cluster_setting }: PodWorkload): PodWorkload {
  return { pod_id, start, workload_id, status, reason, slices, cluster_setting };
}

function viewOf(known: KnownSubscription): Subscription {
  const { subscription_id, team_id, workspace_id, gpuaas_id, region_id, profile, vgpus } = known;
  return {
    subscription_id,
    team_id,
    workspace_id,
    name: null,
    pool_id: '1',
    pool_name: 'a100-mig',
    gpuaas_id,
    region_id,
    status: 'active',
    reason: null,
    profile,
    v_ram_gb: 10,
    vgpus_allocated: vgpus,
    resize: null,
    created_at: new Date(0).toISOString(),
  };
}
