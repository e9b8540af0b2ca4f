import { type CallContext } from '@atoll/contracts';
import {
  podBatches,
  type ChangeMounts,
  type ExposedServiceList,
  type FindConnections,
  type FindExposed,
  type FindInstances,
  type FindVolumes,
  type FoundInstances,
  type FoundVolumes,
  type Pod,
  type PodConnections,
  type PodsAfter,
  type PodsOnSubscriptions,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ConnectionsService } from '../connections/connection.service.js';
import { ExposuresOfTeam } from '../exposures/exposures-of-team.js';
import { InstancesOfTeams } from '../instances/instances-of-teams.js';
import { PodsService } from '../pods/pod.service.js';
import { PodsOfSubscriptions } from '../pods/pods-of-subscriptions.js';
import { VolumesOfTeam } from '../volumes/volumes-of-team.js';

@Controller()
export class BatchesController implements Handlers<typeof podBatches> {
  constructor(
    private readonly exposures: ExposuresOfTeam,
    private readonly all: InstancesOfTeams,
    private readonly reached: ConnectionsService,
    private readonly pods: PodsService,
    private readonly podsOf: PodsOfSubscriptions,
    private readonly volumesOf: VolumesOfTeam,
  ) {}

  @Handle(podBatches.exposed)
  exposed(input: FindExposed, context: CallContext): Promise<ExposedServiceList> {
    return this.exposures.list(input, context);
  }

  @Handle(podBatches.connections)
  connections(input: FindConnections, context: CallContext): Promise<PodConnections> {
    return this.reached.readAsMember(input, context);
  }

  @Handle(podBatches.mount)
  mount(input: ChangeMounts, context: CallContext): Promise<Pod> {
    return this.pods.mount(input, context);
  }

  @Handle(podBatches.instances)
  instances(input: FindInstances, context: CallContext): Promise<FoundInstances> {
    return this.all.find(input, context);
  }

  @Handle(podBatches.ofSubscriptions)
  ofSubscriptions(input: PodsAfter, context: CallContext): Promise<PodsOnSubscriptions> {
    return this.podsOf.after(input, context);
  }

  @Handle(podBatches.volumes)
  volumes(input: FindVolumes, context: CallContext): Promise<FoundVolumes> {
    return this.volumesOf.find(input, context);
  }
}
