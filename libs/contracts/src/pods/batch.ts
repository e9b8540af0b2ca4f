import { IntersectionType, PickType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { ListOf, Nested, Text, WholeNumber } from '../fields.js';
import { NumberedId, NumberedIds, Uuid } from '../id-fields.js';
import { Pagination } from '../page.js';
import { TeamPath } from '../team-path.js';
import { PodConnections } from './connection.js';
import { ExposedServiceList } from './exposed-service.js';
import { Instance } from './instance.js';
import { Pod, PodMount, PodPath } from './pod.js';
import { SharedVolume } from './shared-volume.js';
import { Vm } from './vm.js';

class OfTeam {
  @Uuid({ optional: true })
  team_id?: string;
}

class OfSubscription {
  @NumberedId({ optional: true, example: '42' })
  subscription_id?: string;
}

/** One of the two. */
export class FindExposed extends IntersectionType(OfTeam, OfSubscription) {}

/** All of the team, or of one subscription of it. */
export class FindConnections extends IntersectionType(TeamPath, OfSubscription) {}

export class FindInstances extends OfTeam {
  @Uuid({ optional: true, description: 'Id of the one instance.' })
  instance_id?: string;

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Number of the page, counted from 0. Past the last page with entries, that page is returned.',
  })
  page!: number;

  @WholeNumber({ min: 1, max: 1000, description: 'Entries per page, 1 to 1000.' })
  limit!: number;
}

/** An instance, and the pod or VM where it is one. */
export class FoundInstance extends Instance {
  @Nested(() => Pod, { nullable: true })
  pod!: Pod | null;

  @Nested(() => Vm, { nullable: true })
  vm!: Vm | null;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Number of the exposed services of the pod.' })
  exposed_count!: number;
}

class StatusCount {
  @Text({ max: 32, example: 'running' })
  status!: string;

  @WholeNumber({ min: 0, max: 1_000_000_000 })
  count!: number;
}

export class FoundInstances {
  @ListOf(() => FoundInstance, { max: 1000 })
  data!: FoundInstance[];

  @Nested(() => Pagination)
  pagination!: Pagination;

  @ListOf(() => StatusCount, { max: 100, description: 'Number of all instances that match, by status.' })
  status_counts!: StatusCount[];
}

export class ChangeMounts extends PodPath {
  @ListOf(() => PodMount, {
    max: 20,
    optional: true,
    description: 'Volumes to mount. One that is mounted keeps its path.',
  })
  attach?: PodMount[];

  @NumberedIds({
    max: 20,
    optional: true,
    description: 'Ids of volumes to unmount; one that is not mounted is no error.',
  })
  detach?: string[];
}

/** Pods that `podBatches.ofSubscriptions` returns at once: fewer are the last ones. */
export const podsAtOnce = 1000;

export class PodsAfter extends TeamPath {
  @NumberedIds({ max: 1000, description: 'Ids of the subscriptions of the pods.' })
  subscription_ids!: string[];

  @Uuid({ optional: true, description: 'Id of the last pod that is known; from the first pod on if left out.' })
  pod_id?: string;
}

export class PodOnSubscription extends PickType(Pod, [
  'pod_id',
  'pod_name',
  'subscription_id',
  'status',
  'vgpus',
  'image',
  'volumes',
] as const) {}

export class PodsOnSubscriptions {
  @ListOf(() => PodOnSubscription, { max: podsAtOnce })
  data!: PodOnSubscription[];
}

export class FindVolumes extends TeamPath {
  @NumberedIds({ max: 20, optional: true, description: 'Ids of the only volumes to return; all if left out.' })
  volume_ids?: string[];
}

export class FoundVolume extends SharedVolume {
  @Text({ max: 255, nullable: true, description: 'Path at which a pod or VM mounts it; null while none does.' })
  mount_point!: string | null;
}

export class FoundVolumes {
  @ListOf(() => FoundVolume, { max: 1000 })
  data!: FoundVolume[];
}

/** What the compatibility mount needs of many pods at once, or as one step. */
export const podBatches = contract('pods.batches', {
  /** The exposed services of all pods of a team, or of a subscription: none of one that is another team's. */
  exposed: operation(FindExposed, ExposedServiceList),
  /** How the pods of a team are reached now; for those who may use them. */
  connections: operation(FindConnections, PodConnections),
  /** As `pods.update` with all mounts, which are read and written in one step: of changes at once none is lost. */
  mount: operation(ChangeMounts, Pod),
  /** The instances of a team, or one instance; of all teams for a platform_admin. */
  instances: operation(FindInstances, FoundInstances),
  /** The next pods of subscriptions of a team, by id: none of a subscription of another team. */
  ofSubscriptions: operation(PodsAfter, PodsOnSubscriptions),
  /** The shared volumes of a team, the oldest first: none that another team has. */
  volumes: operation(FindVolumes, FoundVolumes),
});
