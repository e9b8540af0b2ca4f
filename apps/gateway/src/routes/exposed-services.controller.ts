import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  ExposedService,
  ExposedServiceList,
  ListExposedServices,
  ExposedServicePath,
  ExposedServiceQuery,
  exposedServices,
  ExposeService,
  UpdateExposedService,
} from '@atoll/contracts/pods';
import { invalidInput, type FieldError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Exposed services')
@Controller('pods')
export class ExposedServicesController {
  constructor(private readonly rpc: Rpc) {}

  @Post('expose-service')
  @Answers(
    202,
    ExposedService,
    'Expose a service of a pod',
    'Reserves an external port and opens it to a port of the pod; read the status to see when it is `active`. A team has at most 200 of them. Requires team_owner, team_admin or member.',
  )
  @Refuses('not_supported')
  exposeService(@Body() body: ExposeService, @Context() context: CallContext): Promise<ExposedService> {
    return this.rpc.call(exposedServices.expose, body, context);
  }

  @Get('expose-service/status')
  @Answers(
    200,
    ExposedService,
    'Get the status of an exposed service',
    'Returns an exposed service. `service_id` and `pod_name` are sent in a JSON body or in the query. Any member of the team may read it.',
  )
  getExposedService(
    @Query() query: ExposedServiceQuery,
    @Body() body: ExposedServiceQuery,
    @Context() context: CallContext,
  ): Promise<ExposedService> {
    return this.rpc.call(exposedServices.find, oneOf(query, body), context);
  }

  @Get('exposed-services')
  @AnswersAllOrPage(
    ExposedServiceList,
    'List the exposed services of a pod',
    'Returns all exposed services of a pod unless `limit` is sent. Any member of its team may read them.',
  )
  listExposedServices(
    @Query() query: ListExposedServices,
    @Context() context: CallContext,
  ): Promise<ExposedServiceList> {
    return this.rpc.call(exposedServices.list, query, context);
  }

  @Put('update-exposed-service')
  @Answers(
    200,
    ExposedService,
    'Update an exposed service',
    'Changes an exposed service. A new external port opens before the old one closes; if it is not available, the old one stays. Requires team_owner, team_admin or member.',
  )
  @Refuses('not_supported')
  updateExposedService(@Body() body: UpdateExposedService, @Context() context: CallContext): Promise<ExposedService> {
    return this.rpc.call(exposedServices.update, body, context);
  }

  @Delete('delete-exposed-service/:id')
  @Answers(
    200,
    ExposedService,
    'Delete an exposed service',
    'Closes the external port and deletes the exposed service. Requires team_owner, team_admin or member.',
  )
  deleteExposedService(@Param() path: ExposedServicePath, @Context() context: CallContext): Promise<ExposedService> {
    return this.rpc.call(exposedServices.delete, path, context);
  }
}

/** Body and query of one request, which must agree where both name something. */
function oneOf(query: ExposedServiceQuery, body: ExposedServiceQuery): { service_id: string; pod_name?: string } {
  const faults: FieldError[] = [];
  for (const path of ['service_id', 'pod_name'] as const) {
    const [inQuery, inBody] = [query[path], body[path]];
    if (inQuery === undefined || inBody === undefined || inQuery === inBody) continue;
    faults.push({ path, code: 'agrees', message: `${path} must be the same in body and query` });
  }
  const service_id = body.service_id ?? query.service_id;
  if (service_id === undefined)
    faults.push({
      path: 'service_id',
      code: 'isDefined',
      message: 'service_id must be sent, in the body or in the query',
    });
  if (service_id === undefined || faults.length > 0) throw invalidInput(faults);
  const pod_name = body.pod_name ?? query.pod_name;
  return { service_id, ...(pod_name !== undefined && { pod_name }) };
}
