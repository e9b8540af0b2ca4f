import { podUsageTold } from '@atoll/contracts/billing';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { PodEntity } from '../model/pod.entity.js';
import type { VmEntity } from '../model/vm.entity.js';
import type { VolumeEntity } from '../model/volume.entity.js';
import { gigabytesOf } from '../model/volume-size.js';

/** Each of some hundred bytes. */
const factsPerEvent = 100;

/**
 * Publishes for billing what is held, from the instant of a transition on, in the transaction of that transition: each
 * fact once.
 */
@Injectable()
export class UsageFacts {
  constructor(private readonly outbox: Outbox) {}

  /** From `at` on each pod runs, or does not. */
  async tellPods(
    manager: EntityManager,
    pods: readonly { pod: PodEntity; at: Date }[],
    isRunning: boolean,
  ): Promise<void> {
    const facts = pods.map(({ pod: { podId, podName, revision, teamId, workspaceId, regionId }, at }) => ({
      id: `pod:${podId}:${revision}`,
      time: at.toISOString(),
      sequence: revision,
      resource_id: `pod:${podId}`,
      resource_name: podName,
      kind: 'pod' as const,
      sku: 'pod',
      quantity: isRunning ? '1' : '0',
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: regionId,
    }));
    for (let first = 0; first < facts.length; first += factsPerEvent) {
      await this.outbox.add(manager, podUsageTold, { facts: facts.slice(first, first + factsPerEvent) });
    }
  }

  /** As `tellPods`. */
  async tellVm(manager: EntityManager, vm: VmEntity, isRunning: boolean, at: Date): Promise<void> {
    const { instanceId, name, flavour, revision, teamId, workspaceId, regionId } = vm;
    const fact = {
      id: `vm:${instanceId}:${revision}`,
      time: at.toISOString(),
      sequence: revision,
      resource_id: `vm:${instanceId}`,
      resource_name: name,
      kind: 'vm' as const,
      sku: `vm.${flavour}`,
      quantity: isRunning ? '1' : '0',
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: regionId,
    };
    await this.outbox.add(manager, podUsageTold, { facts: [fact] });
  }

  /** From the volume's `enteredAt` on it has this size; 0: it is no longer held. */
  async tellVolume(manager: EntityManager, volume: VolumeEntity, sizeGb: number): Promise<void> {
    const fact = {
      ...volumeFact(volume),
      quantity: String(sizeGb),
      id: `volume:${volume.volumeId}:${volume.revision}`,
    };
    await this.outbox.add(manager, podUsageTold, { facts: [{ ...fact, time: volume.enteredAt.toISOString() }] });
  }

  /** The used space of volumes since their `usedToldAt`, which changes no quantity; at most 1000 of them. */
  async tellUsed(manager: EntityManager, volumes: readonly VolumeEntity[]): Promise<void> {
    const facts = volumes.flatMap((volume) => {
      const time = volume.usedToldAt?.toISOString();
      if (time === undefined) return [];
      return [
        {
          ...volumeFact(volume),
          quantity: String(volume.billedGb),
          id: `volume:${volume.volumeId}:used:${time}`,
          time,
        },
      ];
    });
    if (facts.length > 0) await this.outbox.add(manager, podUsageTold, { facts });
  }
}

function volumeFact({ volumeId, name, revision, teamId, workspaceId, regionId, usedBytes }: VolumeEntity) {
  const used = gigabytesOf(usedBytes);
  return {
    sequence: revision,
    resource_id: `shared_storage:${volumeId}`,
    resource_name: name,
    kind: 'shared_storage' as const,
    sku: 'storage.shared',
    team_id: teamId,
    workspace_id: workspaceId,
    region_id: regionId,
    ...(used !== null && { attributes: { used_size_in_gb: used } }),
  };
}
