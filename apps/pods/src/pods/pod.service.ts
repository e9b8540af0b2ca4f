import { personOf, requirePermission, type CallContext } from '@atoll/contracts';
import { type PodSubscription } from '@atoll/contracts/gpuaas';
import { type ChangeMounts, type CreatePod, type Pod, type PodMount, type UpdatePod } from '@atoll/contracts/pods';
import { newId, Transactions, unique, Writers } from '@atoll/database';
import { AppError, invalidField, requireSomeField } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AllowedImages } from '../images/allowed-images.js';
import { termsFor } from '../limits/bounds.js';
import { PodLimitsService } from '../limits/pod-limit.service.js';
import { MountableVolumes, requireMountsApart } from '../volumes/mountable-volumes.js';
import { envPurpose, PodEntity } from '../model/pod.entity.js';
import { PodSteps } from './pod-steps.js';
import { PodNames } from './pod-names.js';
import { PodReader } from './pod-reader.js';
import { requireFewAtRest, requireRoom, turnAtRoom } from './pod-room.js';
import { PodStarts } from './pod-start.js';
import { podView } from './pod-view.js';

/** Of one pod, as `pods.update` has it. */
const mostMounts = 20;

/** Pods: made and changed. */
@Injectable()
export class PodsService {
  constructor(
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly sealer: Sealer,
    private readonly volumes: MountableVolumes,
    private readonly pods: PodSteps,
    private readonly names: PodNames,
    private readonly reader: PodReader,
    private readonly starts: PodStarts,
    private readonly images: AllowedImages,
    private readonly limits: PodLimitsService,
  ) {}

  /**
   * Throws what its team, its image and its subscription refuse. What changes on the way there fails the pod, with the
   * same reason.
   */
  async create(asked: CreatePod, context: CallContext): Promise<Pod> {
    const { team_id, workspace_id, image, vgpus = 1 } = asked;
    const kept = await this.transactions.kept<Pod>(context);
    if (kept) return kept;
    await this.gate.requireGrowth(context.caller, team_id, 'team', workspace_id);
    requireMountsApart(asked.volumes);
    const terms = termsFor(asked, await this.limits.effective(team_id));
    const subscription = await this.requireSubscription(asked.subscription_id, vgpus, team_id, context);
    await this.images.require(team_id, image, context.requestId);
    const { refusal } = subscription;
    // Without an idempotency key, a creation that is refused need not wait for its turn.
    if (refusal && !context.idempotency) throw new AppError(refusal.code, refusal.message);
    return this.writers.once(turnAtRoom(subscription.subscription_id), context, async (manager) => {
      const workspaceId = workspace_id ?? subscription.workspace_id;
      await this.gate.holdOpen(manager, context.caller, { teamId: team_id, workspaceId });
      await requireFewAtRest(manager, team_id);
      await requireRoom(manager, subscription, vgpus);
      await this.volumes.hold(manager, { teamId: team_id, gpuaasId: subscription.gpuaas_id }, asked.volumes ?? []);
      const podName = await this.names.free(manager, asked.name);
      const requestedBy = personOf(context.caller);
      const place = { podName, teamId: team_id, workspaceId, requestedBy };
      const values = { ...this.valuesOf(asked, subscription), ...terms, ...place };
      return podView(await unique(this.pods.insert(manager, values, causeOf(context)), nameTaken(podName)));
    });
  }

  /** The image and the mounts hold from the next run on. */
  async update({ pod_name, name, image, volumes }: UpdatePod, context: CallContext): Promise<Pod> {
    requireSomeField({ name, image, volumes }, 'name', 'image', 'volumes');
    const found = await this.findToChange(pod_name, context);
    requireMountsApart(volumes);
    if (image !== undefined) await this.images.require(found.teamId, image, context.requestId);
    return this.change(found, context, async (manager, pod) => {
      await this.volumes.hold(manager, pod, volumes ?? []);
      return {
        ...(name !== undefined && { name }),
        ...(image !== undefined && { image }),
        ...(volumes && { volumes }),
      };
    });
  }

  /** As `update` with the mounts that there are, and these besides or no more. */
  async mount({ pod_name, attach = [], detach = [] }: ChangeMounts, context: CallContext): Promise<Pod> {
    return this.change(await this.findToChange(pod_name, context), context, async (manager, pod) => {
      const added = attach.filter(({ volume_id }) => !pod.volumes.some((mount) => mount.volume_id === volume_id));
      const volumes: PodMount[] = [...pod.volumes.filter(({ volume_id }) => !detach.includes(volume_id)), ...added];
      if (volumes.length > mostMounts)
        throw invalidField('volumes', 'mostMounts', `must be at most ${mostMounts} for a pod`);
      requireMountsApart(volumes);
      await this.volumes.hold(manager, pod, added);
      return { volumes };
    });
  }

  private async findToChange(podName: string, { caller }: CallContext): Promise<PodEntity> {
    const found = await this.reader.find(podName, caller, 'useResources');
    await this.gate.requireGrowth(caller, found.teamId, 'pod');
    return found;
  }

  /** Writes what `decide` returns, which sees the pod under its lock. */
  private change(
    found: PodEntity,
    { caller }: CallContext,
    decide: (manager: EntityManager, pod: PodEntity) => Promise<Partial<Pick<PodEntity, 'name' | 'image' | 'volumes'>>>,
  ): Promise<Pod> {
    return this.transactions.run(async (manager) => {
      await this.gate.holdOpen(manager, caller, found);
      const pod = await this.pods.lockLive(manager, found.podId);
      if (pod.state === 'deleting') throw new AppError('conflict', 'The pod is being deleted.');
      const changed = await decide(manager, pod);
      await manager.update(PodEntity, { podId: pod.podId }, changed);
      return podView(Object.assign(pod, changed));
    });
  }

  /** Another team's subscription is not found, whatever team the caller named. */
  private async requireSubscription(
    id: string,
    vgpus: number,
    teamId: string,
    context: CallContext,
  ): Promise<PodSubscription> {
    const found = await this.starts.subscription(teamId, id, vgpus, context.requestId);
    requirePermission(context.caller, teamId, 'useResources', 'subscription');
    return found;
  }

  private valuesOf(
    asked: CreatePod,
    { gpuaas_id, region_id, region_name, profile }: PodSubscription,
  ): Partial<PodEntity> {
    const podId = newId();
    const { env = {}, cpu, memory_gb } = asked;
    return {
      podId,
      name: asked.name,
      subscriptionId: asked.subscription_id,
      gpuaasId: gpuaas_id,
      regionId: region_id,
      regionName: region_name,
      profile,
      image: asked.image,
      vgpus: asked.vgpus ?? 1,
      cpu: cpu === undefined ? null : String(cpu),
      memoryGb: memory_gb === undefined ? null : String(memory_gb),
      command: asked.command ?? [],
      sealedEnv: Object.keys(env).length === 0 ? null : this.sealer.seal(JSON.stringify(env), envPurpose(podId)),
      ports: asked.ports ?? [],
      volumes: asked.volumes ?? [],
      mounted: [],
      restart: asked.restart ?? 'always',
      start: 1,
      run: 0,
      restarts: 0,
      failures: 0,
      slices: [],
      isBilled: false,
      createdAt: new Date(),
    };
  }
}

const nameTaken = (podName: string): string =>
  `Another pod was given the name ${podName} at the same time: repeat the request.`;
