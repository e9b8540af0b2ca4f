import { personOf, type CallContext } from '@atoll/contracts';
import { type Pod, type PodAction, type PodLimits, type PodPath } from '@atoll/contracts/pods';
import { Transactions, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AllowedImages } from '../images/allowed-images.js';
import { boundedTerms } from '../limits/bounds.js';
import { PodLimitsService } from '../limits/pod-limit.service.js';
import type { PodEntity } from '../model/pod.entity.js';
import { atRest, endings } from '../model/run-states.js';
import { MountableVolumes } from '../volumes/mountable-volumes.js';
import { PodSteps } from './pod-steps.js';
import { PodReader } from './pod-reader.js';
import { requireRoom, turnAtRoom } from './pod-room.js';
import { PodStarts } from './pod-start.js';
import { podView } from './pod-view.js';

/** Of what gives to a team: what comes before its pod is locked, and whose turn it waits for. */
interface Growing {
  readonly hold?: (manager: EntityManager) => Promise<void>;
  readonly turn?: string;
}

type Move = (manager: EntityManager, pod: PodEntity) => Promise<PodEntity | undefined>;

/** Pods: started, stopped, restarted and deleted. What a pod is or does already changes nothing. */
@Injectable()
export class PodActions {
  constructor(
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly pods: PodSteps,
    private readonly reader: PodReader,
    private readonly starts: PodStarts,
    private readonly images: AllowedImages,
    private readonly volumes: MountableVolumes,
    private readonly limits: PodLimitsService,
  ) {}

  async act({ pod_name, action }: PodAction, context: CallContext): Promise<Pod> {
    const kept = await this.transactions.kept<Pod>(context);
    if (kept) return kept;
    const found = await this.reader.find(pod_name, context.caller, 'useResources');
    if (action === 'stop')
      return this.moving(found, context, (manager, pod) =>
        this.pods.move(manager, pod, 'STOP', causeOf(context), { endReason: null }),
      );
    await this.gate.requireGrowth(context.caller, found.teamId, 'pod');
    if (!endings.has(found.state)) await this.images.require(found.teamId, found.image, context.requestId);
    const subscription = atRest.has(found.state)
      ? await this.starts.subscription(found.teamId, found.subscriptionId, found.vgpus, context.requestId)
      : undefined;
    const limits = await this.limits.effective(found.teamId);
    const move: Move = async (manager, pod) => {
      if (endings.has(pod.state)) throw new AppError('conflict', 'The pod is stopping: start it when it has stopped.');
      const isAtRest = atRest.has(pod.state);
      if (!isAtRest && action === 'start') return undefined;
      await this.volumes.hold(manager, pod, pod.volumes);
      if (!isAtRest) return this.pods.restart(manager, pod, causeOf(context));
      if (!subscription) throw new AppError('conflict', 'The pod has just stopped: start it again.');
      await requireRoom(manager, subscription, pod.vgpus);
      return this.start(manager, pod, limits, context);
    };
    const hold = (manager: EntityManager) => this.gate.holdOpen(manager, context.caller, found);
    return this.moving(found, context, move, { hold, ...(subscription && { turn: turnAtRoom(found.subscriptionId) }) });
  }

  async delete({ pod_name }: PodPath, context: CallContext): Promise<Pod> {
    const found = await this.reader.find(pod_name, context.caller, 'useResources');
    return this.moving(found, context, (manager, pod) => this.pods.move(manager, pod, 'DELETE', causeOf(context)));
  }

  private moving({ podId }: PodEntity, context: CallContext, move: Move, { hold, turn }: Growing = {}): Promise<Pod> {
    const work = async (manager: EntityManager): Promise<Pod> => {
      await hold?.(manager);
      const pod = await this.pods.lockLive(manager, podId);
      return podView((await move(manager, pod)) ?? pod);
    };
    return turn === undefined ? this.transactions.once(context, work) : this.writers.once(turn, context, work);
  }

  private async start(
    manager: EntityManager,
    pod: PodEntity,
    limits: PodLimits,
    context: CallContext,
  ): Promise<PodEntity | undefined> {
    return this.pods.move(manager, pod, 'START', causeOf(context), {
      start: pod.start + 1,
      requestedBy: personOf(context.caller),
      restarts: 0,
      failures: 0,
      slices: [],
      endReason: null,
      exitCode: null,
      stopsAt: null,
      isStopWarned: false,
      idleness: null,
      ...boundedTerms(pod, limits),
      nextRunAt: null,
    });
  }
}
