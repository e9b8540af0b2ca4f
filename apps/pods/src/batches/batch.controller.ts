import { type CallContext, type TeamPath } from '@atoll/contracts';
import {
  podBatches,
  type ChangeMounts,
  type ExposedServiceList,
  type FindExposed,
  type FindInstances,
  type FoundInstances,
  type Pod,
  type PodConnections,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ConnectionsService } from '../connections/connection.service.js';
import { ExposuresOfTeam } from '../exposures/exposures-of-team.js';
import { InstancesOfTeams } from '../instances/instances-of-teams.js';
import { PodsService } from '../pods/pod.service.js';

@Controller()
export class BatchesController implements Handlers<typeof podBatches> {
  constructor(
    private readonly exposures: ExposuresOfTeam,
    private readonly all: InstancesOfTeams,
    private readonly reached: ConnectionsService,
    private readonly pods: PodsService,
  ) {}

  @Handle(podBatches.exposed)
  exposed(input: FindExposed, context: CallContext): Promise<ExposedServiceList> {
    return this.exposures.list(input, context);
  }

  @Handle(podBatches.connections)
  connections(input: TeamPath, context: CallContext): Promise<PodConnections> {
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
}
