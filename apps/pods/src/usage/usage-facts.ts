import { podUsageTold } from '@atoll/contracts';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { PodEntity } from '../pods/pod.entity.js';

/** Publishes for billing what is held, from the instant of a transition on, in the transaction of that transition: each fact once. */
@Injectable()
export class UsageFacts {
  constructor(private readonly outbox: Outbox) {}

  /** From the pod's `enteredAt` on it runs, or does not. */
  async tellPod(manager: EntityManager, pod: PodEntity, isRunning: boolean): Promise<void> {
    const { podId, podName, revision, enteredAt, teamId, workspaceId, regionId } = pod;
    const fact = {
      id: `pod:${podId}:${revision}`,
      time: enteredAt.toISOString(),
      sequence: revision,
      resource_id: `pod:${podId}`,
      resource_name: podName,
      kind: 'pod' as const,
      sku: 'pod',
      quantity: isRunning ? '1' : '0',
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: regionId,
    };
    await this.outbox.add(manager, podUsageTold, { facts: [fact] });
  }
}
