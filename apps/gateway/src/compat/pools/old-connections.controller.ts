import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { NumberedId, TeamPath, type CallContext } from '@atoll/contracts';
import { connections } from '@atoll/contracts/gpuaas';
import { instances, podBatches } from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { ConfigureRoute } from '../../http/route-config.js';
import { Context } from '../../requests/call-context.js';
import {
  OldAnswers,
  ShownInstant,
  ShownInteger,
  ShownList,
  ShownObject,
  ShownText,
  ShownUuid,
} from '../http/old-answers.js';
import { OldDiscoveredService } from './old-subscriptions.js';
import { servicesOfPods } from './pods-of-team.js';

class OldConnectionsQuery extends TeamPath {
  @NumberedId({ optional: true, example: '42', description: 'Id of the one subscription.' })
  subscription_id?: string;
}

class OldSsh {
  @ShownText('Command that opens the connection.', { example: 'ssh -p 2222 pod@gpu.example.com' })
  cmd!: string;

  @ShownText('Password: empty, since the SSH keys of the user open the connection.')
  pass!: string;
}

class OldConnectionPod {
  @ShownText('Name of the pod.')
  pod_name!: string;

  @ShownText('Status of the pod.', { example: 'running' })
  pod_status!: string;

  @ShownObject(() => OldSsh, 'SSH access; absent where there is none.', { optional: true })
  ssh_info?: OldSsh;

  @ShownList(() => OldDiscoveredService, 'Exposed services of the pod.')
  discovered_services!: OldDiscoveredService[];
}

class OldConnection {
  @ShownInteger('Id of the subscription.')
  id!: number;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownInteger('Id of the region.')
  region_id!: number;

  @ShownList(() => OldConnectionPod, 'Pods on the subscription.')
  pods!: OldConnectionPod[];
}

class OldCompatibleInstance {
  @ShownUuid('Id of the instance.')
  id!: string;

  @ShownText('Name of the instance.')
  name!: string;

  @ShownText('Status of the instance.')
  status!: string;

  @ShownInstant('Instant of creation; null where it is not known.', { nullable: true })
  created_at!: string | null;

  @ShownText('Address: not known.', { nullable: true })
  ip_address!: string | null;
}

/** Addresses, and what may attach to a GPU service. */
@ApiTags('GPU pools')
@Controller('gpuaas')
export class OldConnectionsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('connection-info')
  @OldAnswers([OldConnection], 'List the connections of a team', 'Requires team_owner, team_admin or member.')
  async listConnections(
    @Query() query: OldConnectionsQuery,
    @Context() context: CallContext,
  ): Promise<OldConnection[]> {
    // The main API shows what was last refreshed, and old clients refresh nothing.
    const [held, reached, services] = await Promise.all([
      this.rpc.call(connections.read, query, context),
      this.rpc.call(podBatches.connections, query, context),
      servicesOfPods(this.rpc, query, context),
    ]);
    const ofSubscription = Map.groupBy(reached.data, ({ subscription_id }) => subscription_id);
    return held.data.map(({ subscription_id, pool_name, region_id }) => ({
      id: Number(subscription_id),
      pool_name,
      region_id: Number(region_id),
      pods: (ofSubscription.get(subscription_id) ?? []).map(({ pod_name, status, ssh }) => ({
        pod_name,
        pod_status: status,
        ...(ssh && { ssh_info: { cmd: `ssh -p ${ssh.port} ${ssh.username}@${ssh.host}`, pass: '' } }),
        discovered_services: services.get(pod_name) ?? [],
      })),
    }));
  }

  @Get('compatible-instances/:team_id')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(
    [OldCompatibleInstance],
    'List the instances that may attach to a GPU service',
    'Any member of the team may read them.',
  )
  async listCompatibleInstances(
    @Param() team: TeamPath,
    @Context() context: CallContext,
  ): Promise<OldCompatibleInstance[]> {
    const [compatible, all] = await Promise.all([
      this.rpc.call(connections.compatibleInstances, team, context),
      this.rpc.call(instances.list, team, context),
    ]);
    const createdAt = new Map(all.data.map(({ id, created_at }) => [id, created_at]));
    return compatible.data.map(({ id, name, status }) => ({
      id,
      name,
      status,
      created_at: createdAt.get(id) ?? null,
      ip_address: null,
    }));
  }
}
