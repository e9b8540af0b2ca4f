import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { notFound, Nothing, type CallContext } from '@atoll/contracts';
import {
  exposedServices,
  ExposedServicePath,
  podBatches,
  pods,
  type ExposedService,
  type Pod,
} from '@atoll/contracts/pods';
import { AppError, isAppError, requireSomeField } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { ConfigureRoute } from '../../http/route-config.js';
import { OldAnswers } from '../http/old-answers.js';
import { imagesOfTeam, podsOf, serviceTypeOf } from '../pools/pods-of-team.js';
import {
  ExposeStatusQuery,
  OldExpose,
  OldExposeChange,
  OldExposed,
  OldPodAction,
  Reimage,
  termsOf,
  VolumeAction,
  type SpokenTerms,
} from './old-pods.js';

/** What is done to pods by their names. */
@ApiTags('Pods')
@Controller()
export class OldPodsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('pods/action')
  @OldAnswers(Nothing, 'Start, stop or restart a pod', 'Requires team_owner, team_admin or member.')
  async actOnPod(@Body() asked: OldPodAction, @Context() context: CallContext): Promise<Nothing> {
    await this.find(asked, context);
    await this.rpc.call(pods.act, { pod_name: asked.pod_name, action: asked.pod_action }, context);
    return {};
  }

  @Post('pods/volume-action')
  @OldAnswers(
    Nothing,
    'Mount or unmount volumes of a pod',
    'Takes effect when the pod starts the next time. Requires team_owner, team_admin or member.',
  )
  async changeVolumes(
    @Body() { pod_name, action, volumes }: VolumeAction,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    const attach = volumes.map((volume_id) => ({ volume_id, path: `/volumes/${volume_id}` }));
    await this.rpc.call(
      podBatches.mount,
      { pod_name, ...(action === 'attach_volume' ? { attach } : { detach: volumes }) },
      context,
    );
    return {};
  }

  @Post('gpuaas/pool/reimage')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @OldAnswers(
    Nothing,
    'Change the image of the pods on a subscription',
    'The pods are restarted with it. Requires team_owner, team_admin or member.',
  )
  async reimage(
    @Body() { team_id, subscription_id, image_uuid }: Reimage,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    const image = (await imagesOfTeam(this.rpc, team_id, context)).find(({ id }) => id === image_uuid);
    if (!image) throw notFound('image');
    const all = await podsOf(this.rpc, team_id, [subscription_id], context);
    if (all.length === 0) throw notFound('pod');
    for (const { pod_name, status } of all) {
      await this.rpc.call(pods.update, { pod_name, image: image.reference }, context);
      if (status !== 'stopped' && status !== 'failed')
        await this.rpc.call(pods.act, { pod_name, action: 'restart' }, withoutKey(context));
    }
    return {};
  }

  @Post('pods/expose-service')
  @OldAnswers(OldExposed, 'Expose a service of a pod', 'Requires team_owner, team_admin or member.')
  async exposeService(@Body() asked: OldExpose, @Context() context: CallContext): Promise<OldExposed> {
    const pod = await this.find(asked, context);
    const { pod_name, port, service_name } = asked;
    const terms = { pod_name, port, service_name, ...termsOf(asked.service_type, asked.protocol) };
    try {
      return oldExposed(await this.rpc.call(exposedServices.expose, terms, context), pod);
    } catch (error) {
      throw await this.inOldWords(error, asked, context);
    }
  }

  @Get('pods/expose-service/status')
  @OldAnswers(OldExposed, 'Get an exposed service by its name', 'Any member of the team may read it.')
  async getExposedService(
    @Query() { service_name, pool_subscription_id }: ExposeStatusQuery,
    @Context() context: CallContext,
  ): Promise<OldExposed> {
    const { data } = await this.rpc.call(podBatches.exposed, { subscription_id: pool_subscription_id }, context);
    const service = data.find((one) => one.service_name === service_name);
    if (!service) throw notFound('exposed service');
    return oldExposed(service, await this.find(service, context));
  }

  @Put('pods/update-exposed-service')
  @OldAnswers(OldExposed, 'Change an exposed service', 'Requires team_owner, team_admin or member.')
  async updateExposedService(@Body() asked: OldExposeChange, @Context() context: CallContext): Promise<OldExposed> {
    const { id, port, service_name, protocol } = asked;
    const terms = await this.newTerms(asked, context);
    const isKept = protocol !== undefined && terms.protocol === undefined;
    requireSomeField(
      { ...asked, protocol: terms.protocol },
      ...['service_name', 'port', ...(isKept ? [] : ['protocol']), 'service_type'],
    );
    const change = {
      ...(port !== undefined && { port }),
      ...(service_name !== undefined && { service_name }),
      ...terms,
    };
    const service = await this.rpc.call(exposedServices.update, { service_id: id, ...change }, context);
    return oldExposed(service, await this.find(service, context));
  }

  @Delete('pods/delete-exposed-service/:id')
  @OldAnswers(OldExposed, 'Delete an exposed service', 'Requires team_owner, team_admin or member.')
  async deleteExposedService(@Param() path: ExposedServicePath, @Context() context: CallContext): Promise<OldExposed> {
    const service = await this.rpc.call(exposedServices.delete, path, context);
    return oldExposed(service, await this.find(service, context).catch(() => undefined));
  }

  /** Throws `not_found` for a pod of another subscription than the one that is named. */
  private async find(
    { pod_name, pool_subscription_id }: { pod_name: string; pool_subscription_id?: string },
    context: CallContext,
  ): Promise<Pod> {
    const pod = await this.rpc.call(pods.get, { pod_name }, context);
    if ((pool_subscription_id ?? pod.subscription_id) !== pod.subscription_id) throw notFound('pod');
    return pod;
  }

  /** A type that is not sent stays: then `protocol` changes a NodePort alone, since HTTP and HTTPS go over TCP. */
  private async newTerms(
    { id, service_type, protocol }: OldExposeChange,
    context: CallContext,
  ): Promise<Partial<SpokenTerms>> {
    if (service_type === undefined && protocol === undefined) return {};
    const isKept =
      service_type === undefined &&
      (await this.rpc.call(exposedServices.find, { service_id: id }, context)).protocol === 'HTTP';
    return isKept ? {} : termsOf(service_type, protocol);
  }

  /** Clients look for the words of a name that is taken. */
  private async inOldWords(
    error: unknown,
    { pod_name, service_name }: OldExpose,
    context: CallContext,
  ): Promise<unknown> {
    if (!isAppError(error) || error.code !== 'conflict') return error;
    const { data } = await this.rpc.call(exposedServices.list, { pod_name }, context);
    const isTaken = data.some((service) => service.service_name === service_name);
    return isTaken ? new AppError('conflict', `service name already exists: ${service_name}`) : error;
  }
}

/** For a second operation of one call: what is kept under the key is the answer of the first. */
function withoutKey({ idempotency: _idempotency, ...context }: CallContext): CallContext {
  return context;
}

function oldExposed(service: ExposedService, pod: Pod | undefined): OldExposed {
  return {
    id: Number(service.service_id),
    pod_name: service.pod_name,
    team_id: pod?.team_id ?? null,
    service_name: service.service_name,
    ip: service.host,
    node_port: service.external_port,
    pod_port: service.port,
    protocol: service.protocol,
    status: service.status,
    service_type: serviceTypeOf(service),
    created_at: service.created_at,
  };
}
