import { gpuaasBatches, podWorkloads, type PodSubscription } from '@atoll/contracts/gpuaas';
import type { PodRun } from '@atoll/cluster';
import { Rpc, systemContext } from '@atoll/rpc';
import { Sealer } from '@atoll/seal';
import { Injectable } from '@nestjs/common';
import { envPurpose, type PodEntity } from '../model/pod.entity.js';

const patienceMs = 4_000;

/** What the other services say of the start of a pod, and the run that comes of it. */
@Injectable()
export class PodStarts {
  constructor(
    private readonly rpc: Rpc,
    private readonly sealer: Sealer,
  ) {}

  /** Throws `not_found` where the team has none. What refuses a further workload stands in `refusal`. */
  subscription(teamId: string, subscriptionId: string, vgpus: number, requestId: string): Promise<PodSubscription> {
    const asked = { team_id: teamId, subscription_id: subscriptionId, vgpus };
    return this.rpc.call(podWorkloads.check, asked, this.context(requestId));
  }

  /** Whether the team has or had it. For one of another team gpuaas does the same as for one that does not exist. */
  async hasSubscription(teamId: string, subscriptionId: string, requestId: string): Promise<boolean> {
    const asked = { team_id: teamId, subscription_ids: [subscriptionId] };
    const { data } = await this.rpc.call(gpuaasBatches.subscriptions, asked, this.context(requestId));
    return data.length > 0;
  }

  /** The workload of the pod's present start, requested if it is not there yet. */
  workload({ podId, start, subscriptionId, podName, vgpus, requestedBy, requestId }: PodEntity) {
    const by = requestedBy === null ? {} : { requested_by: requestedBy };
    const asked = { pod_id: podId, start, subscription_id: subscriptionId, pod_name: podName, vgpus, ...by };
    return this.rpc.call(podWorkloads.start, asked, this.context(requestId));
  }

  /** The pod is gone from its node: its workload ends. */
  async endWorkload({ podId, start, requestId }: Pick<PodEntity, 'podId' | 'start' | 'requestId'>): Promise<void> {
    await this.rpc.call(podWorkloads.end, { pod_id: podId, start }, this.context(requestId));
  }

  /** The present run of a pod that is being started, as a cluster needs it. */
  runOf(pod: PodEntity): PodRun {
    return {
      ref: { kind: 'pod', id: pod.podId, run: pod.run },
      requestedAt: pod.enteredAt,
      owner: { teamId: pod.teamId, workspaceId: pod.workspaceId },
      requestedBy: pod.requestedBy,
      podName: pod.podName,
      image: pod.reference ?? pod.image,
      command: pod.command,
      env: this.envOf(pod),
      cpu: pod.cpu === null ? null : Number(pod.cpu),
      memoryGb: pod.memoryGb === null ? null : Number(pod.memoryGb),
      slices: pod.slices.map((slice) => ({
        leaseId: slice.lease_id,
        nodeName: slice.node_name,
        gpuUuid: slice.gpu_uuid,
        board: slice.board,
        profile: slice.profile,
        slotStart: slice.slot_start,
        instanceId: slice.instance_id,
        instanceUuid: null,
        isSimulated: slice.is_simulated,
      })),
      volumes: pod.mounted.map(({ volume_id, path }) => ({ volumeId: volume_id, path })),
    };
  }

  private envOf({ podId, sealedEnv }: PodEntity): Map<string, string> {
    if (sealedEnv === null) return new Map();
    const text = this.sealer.open(sealedEnv, envPurpose(podId)).toString('utf8');
    return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
  }

  private context(requestId: string | null) {
    return systemContext('pods', { deadlineMs: patienceMs, requestId });
  }
}
