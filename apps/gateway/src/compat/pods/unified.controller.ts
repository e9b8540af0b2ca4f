import { Body, Controller, Delete, Get, Param, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { notFound, Nothing, type CallContext } from '@atoll/contracts';
import { baremetal } from '@atoll/contracts/gpuaas';
import {
  exposedServices,
  podBatches,
  pods,
  vms,
  type FoundInstance,
  type FoundInstances,
  type Pod,
} from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { ConfigureRoute } from '../../http/route-config.js';
import { Context } from '../../requests/call-context.js';
import { OldAnswers } from '../http/old-answers.js';
import { mostPerPage } from '../http/old-pages.js';
import { serviceTypeOf } from '../pools/pods-of-team.js';
import { oldInstanceStatus, readInstances } from './unified-reader.js';
import {
  instanceIdOf,
  OldCredentials,
  RenameInstance,
  UnifiedDetails,
  UnifiedExposed,
  UnifiedPage,
  UnifiedPath,
  UnifiedQuery,
} from './unified.js';

/** Pods, VMs and bare-metal hosts as one kind. */
@ApiTags('Instances')
@Controller()
export class UnifiedController {
  constructor(private readonly rpc: Rpc) {}

  @Get('instances/unified')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(UnifiedPage, 'List instances', 'Of a team, for its members; of all teams for a platform_admin.')
  async listInstances(@Query() query: UnifiedQuery, @Context() context: CallContext): Promise<UnifiedPage> {
    const { team_id, page = 0, per_page = 10 } = query;
    const asked = { ...(team_id !== undefined && { team_id }), page, limit: Math.min(per_page, mostPerPage) };
    const { items, found } = await readInstances(this.rpc, asked, context);
    return { items, total_items: found.pagination.total, status_counts: oldCounts(found.status_counts) };
  }

  @Get('instances/unified/:id')
  @OldAnswers(UnifiedDetails, 'Get an instance', 'Any member of its team may read it.')
  async getInstance(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<UnifiedDetails> {
    const { items, found } = await readInstances(
      this.rpc,
      { instance_id: instanceIdOf(path), page: 0, limit: 1 },
      context,
    );
    const [item, instance] = [items[0], found.data[0]];
    if (!item || !instance) throw notFound('instance');
    return { ...item, root_disk: null, shared_volumes: await this.volumesOf(instance, context) };
  }

  @Get('instances/unified/:id/exposed-services')
  @OldAnswers([UnifiedExposed], 'List the exposed services of an instance', 'Any member of its team may read them.')
  async listExposedServices(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<UnifiedExposed[]> {
    const { pod } = await this.find(path, context);
    if (!pod) return [];
    const { data } = await this.rpc.call(exposedServices.list, { pod_name: pod.pod_name }, context);
    return data.map((service) => ({
      id: Number(service.service_id),
      service_name: service.service_name,
      ip: service.host,
      internal_port: service.port,
      external_port: service.external_port,
      protocol: service.protocol,
      type: serviceTypeOf(service),
      status: service.status,
      created_at: service.created_at,
    }));
  }

  @Get('instance/:id/credentials')
  @OldAnswers(OldCredentials, 'Get how an instance is logged in to', 'Requires team_owner, team_admin or member.')
  async getCredentials(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<OldCredentials> {
    const instance = await this.find(path, context);
    if (instance.pod) return this.sshOf(instance.pod, context);
    if (instance.vm)
      throw new AppError(
        'not_supported',
        'The platform offers no log-in to VMs. Use the address and the SSH keys of the guest.',
      );
    const { host, port, username, ssh_password } = await this.rpc.call(
      baremetal.credentials,
      { instance_id: instance.id },
      context,
    );
    return { ip: host, port, username, password: ssh_password };
  }

  @Put('instance/:id/start')
  @OldAnswers(Nothing, 'Start an instance', 'Pods and VMs. Requires team_owner, team_admin or member.')
  startInstance(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<Nothing> {
    return this.act(path, 'start', context);
  }

  @Put('instance/:id/stop')
  @OldAnswers(Nothing, 'Stop an instance', 'Pods and VMs. Requires team_owner, team_admin or member.')
  stopInstance(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<Nothing> {
    return this.act(path, 'stop', context);
  }

  @Put('instance/:id/restart')
  @OldAnswers(Nothing, 'Restart an instance', 'Pods and VMs. Requires team_owner, team_admin or member.')
  restartInstance(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<Nothing> {
    return this.act(path, 'restart', context);
  }

  @Put('instance/:id/rename')
  @OldAnswers(
    Nothing,
    'Rename an instance',
    'Pods and VMs; a name is a DNS label. Requires team_owner, team_admin or member.',
  )
  async renameInstance(
    @Param() path: UnifiedPath,
    @Body() { name }: RenameInstance,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    const { id, pod, vm } = requireGuest(await this.find(path, context));
    if (pod) await this.rpc.call(pods.update, { pod_name: pod.pod_name, name }, context);
    if (vm) await this.rpc.call(vms.update, { instance_id: id, name }, context);
    return {};
  }

  @Delete('instance/:id')
  @OldAnswers(
    Nothing,
    'Delete an instance',
    'A pod or VM is deleted, a bare-metal host released. Requires team_owner, team_admin or member.',
  )
  async deleteInstance(@Param() path: UnifiedPath, @Context() context: CallContext): Promise<Nothing> {
    const { id, pod, vm } = await this.find(path, context);
    if (pod) await this.rpc.call(pods.delete, { pod_name: pod.pod_name }, context);
    else if (vm) await this.rpc.call(vms.delete, { instance_id: id }, context);
    else await this.rpc.call(baremetal.end, { instance_id: id }, context);
    return {};
  }

  private async act(path: UnifiedPath, action: 'start' | 'stop' | 'restart', context: CallContext): Promise<Nothing> {
    const { id, pod, vm } = requireGuest(await this.find(path, context));
    if (pod) await this.rpc.call(pods.act, { pod_name: pod.pod_name, action }, context);
    if (vm) await this.rpc.call(vms[action], { instance_id: id }, context);
    return {};
  }

  private async find(path: UnifiedPath, context: CallContext): Promise<FoundInstance> {
    const { data } = await this.rpc.call(
      podBatches.instances,
      { instance_id: instanceIdOf(path), page: 0, limit: 1 },
      context,
    );
    const [instance] = data;
    if (!instance) throw notFound('instance');
    return instance;
  }

  private async sshOf({ team_id, subscription_id, pod_name }: Pod, context: CallContext): Promise<OldCredentials> {
    const { data } = await this.rpc.call(podBatches.connections, { team_id, subscription_id }, context);
    const ssh = data.find((pod) => pod.pod_name === pod_name)?.ssh;
    if (!ssh)
      throw new AppError('conflict', 'The pod has no SSH access: it is not running, or the platform offers no SSH.');
    return { ip: ssh.host, port: ssh.port, username: ssh.username, password: '' };
  }

  private async volumesOf(
    { team_id, pod, vm }: FoundInstance,
    context: CallContext,
  ): Promise<UnifiedDetails['shared_volumes']> {
    const guest = pod ?? vm;
    if (!guest || guest.volumes.length === 0) return [];
    const volume_ids = [...new Set(guest.volumes.map(({ volume_id }) => volume_id))];
    const { data: known } = await this.rpc.call(podBatches.volumes, { team_id, volume_ids }, context);
    return guest.volumes.map(({ volume_id, path }) => {
      const volume = known.find((one) => one.volume_id === volume_id);
      const mount = {
        mount_operation: 'attach',
        mount_status: guest.status === 'running' ? 'mounted' : 'pending',
        mount_error: null,
      };
      return {
        id: Number(volume_id),
        name: volume?.name ?? '',
        mount_point: path,
        size_in_gb: volume?.size_in_gb ?? null,
        status: volume ? 'IN_USE' : 'deleted',
        ...mount,
      };
    });
  }
}

/** Statuses that are one to old clients are counted together. */
function oldCounts(counts: FoundInstances['status_counts']): UnifiedPage['status_counts'] {
  const byStatus = Map.groupBy(counts, ({ status }) => oldInstanceStatus(status));
  return [...byStatus].map(([status, all]) => ({ status, count: all.reduce((sum, { count }) => sum + count, 0) }));
}

function requireGuest(instance: FoundInstance): FoundInstance {
  if (instance.pod ?? instance.vm) return instance;
  throw new AppError(
    'not_supported',
    'A bare-metal host cannot be started, stopped or renamed here. Use the paths under /api/baremetal of the main API.',
  );
}
