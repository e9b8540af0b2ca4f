import { podWorkloadChanged, type PodWorkloadChanged } from '@atoll/contracts/gpuaas';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { endOfSubscription } from './pod-end.js';
import { PodSteps } from './pod-steps.js';

/** What happens to the workload of a pod, beside what this service requests of it. */
@Injectable()
export class PodWorkloadEvents {
  constructor(private readonly pods: PodSteps) {}

  @OnEvent(podWorkloadChanged, { consumer: 'pod-workloads' })
  async onChanged(
    { pod_id, start, status, reason }: PodWorkloadChanged,
    { manager, requestId }: EventDelivery,
  ): Promise<void> {
    const pod = await this.pods.lock(manager, pod_id);
    if (pod?.start !== start) return;
    // What waits for it finds by itself that it runs, or why it never did. Its end is not left to that: a step that is
    // under way may have been answered before.
    if (status === 'running' || (status === 'failed' && pod.state === 'pending'))
      return this.pods.touch(manager, [pod_id]);
    const endReason = status === 'failed' ? `Its workload failed. ${reason ?? ''}`.trim() : endOfSubscription;
    await this.pods.move(
      manager,
      pod,
      'STOP',
      { actor: 'system:gpuaas', ...(requestId !== undefined && { requestId }), reason: endReason },
      { endReason },
    );
  }
}
