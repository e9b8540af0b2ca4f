import { AppError } from '@atoll/errors';
import { contract, event, operation } from '../contract.js';
import { Flag, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';

/** One start of a pod: it has at most one workload, however often that is requested. */
export class PodStart {
  @Uuid()
  pod_id!: string;

  @WholeNumber({
    min: 1,
    max: 1_000_000_000,
    description: 'Counts the starts of the pod; a restart keeps its workload.',
  })
  start!: number;
}

export class CheckPodWorkload {
  @Uuid({
    optional: true,
    description: 'Whose it has to be: that of another team is looked for as one that is not there.',
  })
  team_id?: string;

  @NumberedId()
  subscription_id!: string;

  @WholeNumber({ min: 1, max: 10_000 })
  vgpus!: number;
}

/** Why a workload cannot start, as an `AppError` has it. */
export class WorkloadRefusal {
  @OneOf('WorkloadRefusalCode', ['conflict', 'insufficient_capacity', 'unavailable'])
  code!: 'conflict' | 'insufficient_capacity' | 'unavailable';

  @Text({ max: 500 })
  message!: string;
}

/** A subscription as its pods need it, and whether one more could start on it now. */
export class PodSubscription {
  @NumberedId()
  subscription_id!: string;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId()
  gpuaas_id!: string;

  @NumberedId()
  region_id!: string;

  @Text({ max: 100 })
  region_name!: string;

  @Text({ max: 64 })
  profile!: string;

  @WholeNumber({ min: 0, max: 10_000 })
  vgpus!: number;

  @WholeNumber({
    min: 0,
    max: 10_000,
    description: 'In use by workloads that are no pod’s; without those that are ending.',
  })
  vgpus_beside_pods!: number;

  @Nested(() => WorkloadRefusal, { nullable: true })
  refusal!: WorkloadRefusal | null;
}

export class StartPodWorkload extends PodStart {
  @NumberedId()
  subscription_id!: string;

  @Text({ max: 63 })
  pod_name!: string;

  @WholeNumber({ min: 1, max: 10_000 })
  vgpus!: number;

  @Text({
    optional: true,
    max: 64,
    description: 'For whom it counts in the queue of the pool besides its team: who started the pod. Left out: nobody.',
  })
  requested_by?: string;
}

/** A slice or a turn of a GPU that a workload holds. */
export class LeasedSlice {
  @NumberedId()
  lease_id!: string;

  @Text({ max: 200 })
  node_name!: string;

  @Text({ max: 100 })
  gpu_uuid!: string;

  @Text({ max: 64 })
  board!: string;

  @Text({ max: 64 })
  profile!: string;

  @WholeNumber({ min: 0, max: 63, nullable: true, description: 'First memory slice of a MIG instance.' })
  slot_start!: number | null;

  @WholeNumber({ min: 0, max: 32_767, nullable: true, description: 'NVML’s id of the MIG instance.' })
  instance_id!: number | null;

  @Flag()
  is_simulated!: boolean;
}

const podWorkloadStatuses = ['waiting', 'pending', 'running', 'stopping', 'stopped', 'failed'] as const;

export class PodWorkload extends PodStart {
  @NumberedId({ nullable: true, description: 'null while `waiting`, and where it never came to be.' })
  workload_id!: string | null;

  @OneOf('PodWorkloadStatus', podWorkloadStatuses, {
    description: '`waiting`: its subscription is not active yet; request it again.',
  })
  status!: (typeof podWorkloadStatuses)[number];

  @Text({ max: 500, nullable: true })
  reason!: string | null;

  @ListOf(() => LeasedSlice, { max: 10_000, description: 'All on one node; complete once `running`.' })
  slices!: LeasedSlice[];

  @WholeNumber({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    description: '`setting` of the cluster that it runs on, or a later one; 0 where it never came to be.',
  })
  cluster_setting!: number;
}

/** The refusal of a workload for which a subscription of `held` vGPUs has too few free ones. */
export function tooFewVgpus(held: number, used: number): AppError {
  const free = Math.max(0, held - used);
  return new AppError(
    'insufficient_capacity',
    `The subscription has ${held} vGPUs and ${used} of them are in use. Available: ${free}.`,
  );
}

/** For the pods service, which has authorised its caller. */
export const podWorkloads = contract('gpuaas.pod_workloads', {
  /** Changes nothing. Throws `not_found`. */
  check: operation(CheckPodWorkload, PodSubscription),
  /**
   * Starts the workload of a pod's start, or answers how it is. Throws `not_found`, `insufficient_capacity`,
   * `conflict`.
   */
  start: operation(StartPodWorkload, PodWorkload),
  /**
   * The pod of this start is gone from its node: its workload stops, and none begins for this or an earlier start. Safe
   * to repeat.
   */
  end: operation(PodStart, Nothing),
});

export class PodWorkloadChanged extends PodStart {
  @OneOf('PodWorkloadChange', ['running', 'stopping', 'stopped', 'failed'])
  status!: 'running' | 'stopping' | 'stopped' | 'failed';

  @Text({ max: 500, nullable: true })
  reason!: string | null;
}
/**
 * `stopping`: stopped by another service than pods, for example by an unsubscription with `force`. It waits for `end`
 * until 75 s after the last one of its team, and at most an hour.
 */
export const podWorkloadChanged = event('gpuaas.pod_workload_changed', PodWorkloadChanged);
